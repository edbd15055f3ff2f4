// SPDX-License-Identifier: Apache-2.0
//
// The JavaScript kernel: runs cells in node's own global scope and tells what comes of them (src/code/frames.h) on
// descriptor 3. Runs come over stdin, one after the other, and are read while nothing runs: so a cell that blocks is
// ended by the signal alone. What children write to descriptors they inherited goes past the kernel (src/code/pipe.h).
'use strict';
(() => {
  const fs = require('fs'), vm = require('vm'), util = require('util'), Module = require('module');
  const FRAME_MAX = (16 << 20) - 4096, CHUNK = 65536;
  const TYPESCRIPT = process.argv.includes('typescript');
  let count = 0, running = false, status = 0, interrupted = null;

  function write(fd, data) {
    for (let at = 0; at < data.length;) {
      try {
        at += fs.writeSync(fd, data, at);
      } catch (error) {
        if (error.code !== 'EAGAIN') process.exit(1);
      }
    }
  }

  function put(kind, ...parts) {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    const head = Buffer.alloc(5);
    head.write(kind, 0, 'latin1');
    head.writeUInt32LE(size, 1);
    write(3, Buffer.concat([head, ...parts]));
  }

  function u32(...values) {
    const out = Buffer.alloc(4 * values.length);
    values.forEach((value, i) => out.writeUInt32LE(value >>> 0, 4 * i));
    return out;
  }

  const sized = (text) => { const data = Buffer.from(text); return Buffer.concat([u32(data.length), data]); };

  // --- output ---

  for (const [stream, kind] of [[process.stdout, 'O'], [process.stderr, 'E']]) {
    const send = (chunk, encoding, done) => {
      const data = typeof chunk === 'string' ? Buffer.from(chunk, typeof encoding === 'string' ? encoding : 'utf8') : Buffer.from(chunk);
      for (let at = 0; at < data.length; at += CHUNK) put(kind, data.subarray(at, at + CHUNK));
      const callback = typeof encoding === 'function' ? encoding : done;
      if (typeof callback === 'function') process.nextTick(callback);
      return true;
    };
    stream.write = send;
    stream._write = (chunk, encoding, done) => { send(chunk, encoding); done(); };
    stream.end = () => stream;
  }

  // --- results ---

  function putResult(items, main) {
    const parts = [Buffer.from([main ? 1 : 0])];
    let left = FRAME_MAX;
    for (let [name, value] of Object.entries(items)) {
      let data = Buffer.isBuffer(value) ? Buffer.from(value.toString('base64')) : Buffer.from(String(value));
      if (data.length > left) {
        data = Buffer.from(`<${name} of ${data.length} bytes is too large to be shown>`);
        name = 'text';
      }
      left -= data.length + 300;
      parts.push(Buffer.from([name.length]), Buffer.from(name), u32(data.length), data);
    }
    put('R', ...parts);
  }

  const FORMATS = {
    'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown', 'image/svg+xml': 'svg', 'image/png': 'png',
    'image/jpeg': 'jpeg', 'text/latex': 'latex', 'application/json': '*json', 'application/javascript': 'javascript',
  };

  // A value may bring its representations: by media type (Symbol.for("Jupyter.display")), or in methods of its own.
  function bundle(value) {
    const items = { text: util.inspect(value, { depth: 4 }) };
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return items;
    try {
      const own = value[Symbol.for('Jupyter.display')];
      const found = typeof own === 'function' ? own.call(value) : {};
      for (const [type, item] of Object.entries(found))
        items[FORMATS[type] || (type.endsWith('json') ? '*' + type : type)] =
          typeof item === 'string' || Buffer.isBuffer(item) ? item : JSON.stringify(item);
      for (const [method, name] of [['_toHtml', 'html'], ['_toSvg', 'svg'], ['_toPng', 'png'], ['_toMarkdown', 'markdown']])
        if (typeof value[method] === 'function') items[name] = value[method]();
    } catch { /* text is there */ }
    return items;
  }

  // --- cells ---

  // What a cell declares has to be there for the next one, again and again: so declarations at its top level become those
  // of the global scope that can be repeated. Only where await makes a function of the cell does that take a rewriting.
  const isAwait = (error) => error instanceof SyntaxError && /await/.test(error.message);

  function compile(source, name) {
    return new vm.Script(source, { filename: name, importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER });
  }

  // Characters that are code, as opposed to strings, comments and templates; and how deep they stand.
  function scan(source, visit) {
    let depth = 0;
    for (let i = 0; i < source.length; i++) {
      const c = source[i], two = source.slice(i, i + 2);
      if (two === '//') { while (i < source.length && source[i] !== '\n') i++; continue; }
      if (two === '/*') { i = source.indexOf('*/', i + 2); if (i < 0) return; i++; continue; }
      if (c === '"' || c === "'" || c === '`') {
        for (i++; i < source.length && source[i] !== c; i++) if (source[i] === '\\') i++;
        continue;
      }
      if ('{(['.includes(c)) depth++;
      else if ('})]'.includes(c)) depth--;
      visit(i, depth, c);
    }
  }

  // const and let at the top level become var: a cell can be run twice, and classes and constants outlive it.
  function loosen(source) {
    const edits = [];
    scan(source, (i, depth) => {
      if (depth !== 0 || (i > 0 && /[\w$.]/.test(source[i - 1]))) return;
      const found = /^(const|let)(?=[\s{[])|^class\s+([A-Za-z_$][\w$]*)/.exec(source.slice(i, i + 200));
      if (found && found[1]) edits.push([i, found[1].length, 'var']);
      else if (found && /(^|[;}\n])\s*$/.test(source.slice(0, i))) edits.push([i, 0, `var ${found[2]} = `]);
    });
    for (const [at, length, text] of edits.reverse()) source = source.slice(0, at) + text + source.slice(at + length);
    return source;
  }

  // import x from "y" → a dynamic import, as a cell is a script.
  function imports(source) {
    return source.replace(/^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\{([^}]*)\}|\*\s+as\s+([\w$]+))?\s*(?:from\s*)?(["'][^"'\n]+["'])[^\S\n]*;?/gm,
      (_, one, several, all, from) => {
        const parts = [];
        if (one) parts.push(`default: ${one}`);
        if (several) parts.push(several.replace(/\s+as\s+/g, ': '));
        if (all) return `var ${all} = await import(${from});`;
        return parts.length ? `var {${parts.join(', ')}} = await import(${from});` : `await import(${from});`;
      });
  }

  // The body of an async function: what it declares with var goes to the global object, its last expression is returned.
  function asyncSource(source) {
    const names = new Set(), starts = [0];
    scan(source, (i, depth, c) => {
      if (depth !== 0) return;
      if (c === ';' || c === '\n') starts.push(i + 1);
      if (i > 0 && /[\w$.]/.test(source[i - 1])) return;
      const found = /^var\s+(?:([A-Za-z_$][\w$]*)|[{[]([^}\]]*)[}\]])/.exec(source.slice(i, i + 2000));
      if (found && found[1]) names.add(found[1]);
      if (found && found[2]) for (const part of found[2].split(',')) {
        const name = /([A-Za-z_$][\w$]*)\s*(?:=.*)?$/.exec(part.trim());
        if (name) names.add(name[1]);
      }
      const made = /^(?:async\s+)?function\s*\*?\s+([A-Za-z_$][\w$]*)/.exec(source.slice(i, i + 200));
      if (made) names.add(made[1]);
    });
    const keep = [...names].map((name) => `try { globalThis.${name} = ${name}; } catch {}`).join(' ');
    for (const at of starts.reverse()) {
      const last = source.slice(at).trim();
      if (!last) continue;
      const text = last.replace(/;+\s*$/, '');
      const wrapped = `(async () => { try { ${source.slice(0, at)}\nreturn (${text}\n); } finally { ${keep} } })()`;
      try { compile(wrapped, 'x'); return wrapped; } catch { continue; }
    }
    return `(async () => { try { ${source}\n } finally { ${keep} } })()`;
  }

  // Not for the cells: that what the kernel uses is experimental.
  const warn = process.emitWarning;
  process.emitWarning = (warning, ...rest) =>
    /vm\.USE_MAIN|stripTypeScript/.test(String(warning)) ? undefined : warn.call(process, warning, ...rest);

  function strip(source) {
    if (typeof Module.stripTypeScriptTypes !== 'function')
      throw new Error(`TypeScript needs node 22.13 or newer: this is ${process.version}`);
    return Module.stripTypeScriptTypes(source, { mode: 'transform' });
  }

  async function evaluate(source, name) {
    if (TYPESCRIPT) source = strip(source);
    source = loosen(imports(source));
    let script;
    try {
      script = compile(source, name);
    } catch (error) {
      if (!isAwait(error)) throw error;
      script = compile(asyncSource(source), name);
      const stop = new Promise((_, reject) => { interrupted = reject; });
      return await Promise.race([script.runInThisContext({ breakOnSigint: true }), stop]);
    }
    return script.runInThisContext({ breakOnSigint: true });
  }

  function putError(error) {
    let name = 'Error', value = '', text = '';
    try {
      if (error instanceof Error || (error && typeof error.stack === 'string')) {
        name = String(error.name || 'Error');
        value = String(error.message);
        text = String(error.stack).split('\n').filter((line) => !/node:|\[eval|evalmachine/.test(line)).join('\n');
      } else {
        name = 'Uncaught';
        value = util.inspect(error);
        text = `Uncaught ${value}`;
      }
      if (error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') name = 'KeyboardInterrupt';
    } catch { /* as far as it got */ }
    status = 1;
    put('X', sized(name), sized(value.slice(0, 1 << 20)), sized(text.slice(0, 1 << 20)));
  }

  async function run(payload) {
    const number = payload.readUInt32LE(0), size = payload.readUInt32LE(4);
    const before = {};
    for (const pair of payload.toString('utf8', 8, 8 + size).split('\0').filter(Boolean)) {
      const at = pair.indexOf('='), name = pair.slice(0, at);
      before[name] = process.env[name];
      process.env[name] = pair.slice(at + 1);
    }
    const source = payload.toString('utf8', 8 + size);
    count++;
    status = 0;
    running = true;
    put('S', u32(number));
    write(2, Buffer.from(`\x1e\x1ecella S ${number}\x1e`));
    try {
      const value = await evaluate(source, `<cell ${count}>`);
      if (value !== undefined && !/;\s*$/.test(source)) {
        globalThis._ = value;
        putResult(bundle(value), true);
      }
    } catch (error) {
      putError(error);
    }
    running = false;
    interrupted = null;
    for (const [name, value] of Object.entries(before))
      if (value === undefined) delete process.env[name]; else process.env[name] = value;
    put('D', u32(number, count, status));
    write(2, Buffer.from(`\x1e\x1ecella D ${number} ${count} ${status}\x1e`));
  }

  // --- the world of the cells ---

  process.on('SIGINT', () => {
    if (running && interrupted) interrupted(Object.assign(new Error('interrupted'), { name: 'KeyboardInterrupt' }));
  });
  for (const event of ['uncaughtException', 'unhandledRejection'])
    process.on(event, (error) => process.stderr.write(`Uncaught ${util.inspect(error)}\n`));

  const inCwd = Module.createRequire(process.cwd() + '/');
  Object.assign(globalThis, {
    require: inCwd, module: new Module('<cell>'), exports: {}, __filename: '<cell>', __dirname: process.cwd(),
    display: (...values) => values.forEach((value) => putResult(bundle(value), false)),
  });
  globalThis.prompt = () => { throw new Error('prompt() is not available: a run has no stdin'); };

  let inbox = Buffer.alloc(0), queue = Promise.resolve();
  process.stdin.on('data', (data) => {
    inbox = Buffer.concat([inbox, data]);
    while (inbox.length >= 5 && inbox.length >= 5 + inbox.readUInt32LE(1)) {
      const payload = inbox.subarray(5, 5 + inbox.readUInt32LE(1));
      inbox = inbox.subarray(5 + payload.length);
      queue = queue.then(() => run(payload));
    }
  });
  process.stdin.on('end', () => process.exit(0));
  put('H', u32(1, 0, 0));
})();
