// SPDX-License-Identifier: Apache-2.0
//
// The JavaScript kernel: runs cells in node's own global scope and tells what comes of them (src/code/frames.h) on
// descriptor 3. Runs come over stdin, one after the other, and are read while nothing runs: so a cell that blocks is
// ended by the signal alone. What children write to descriptors they inherited goes past the kernel (src/code/pipe.h).
'use strict';
(() => {
  const fs = require('fs'), vm = require('vm'), util = require('util'), Module = require('module');
  const path = require('path'), url = require('url');
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
  // An older node has no loader for what is no module: there import() is a function of ours.
  const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  const importFromHere = (from) => import(/^\.{0,2}\//.test(from) ? url.pathToFileURL(path.resolve(from)).href : from);

  function withImports(source) {
    const found = [];
    if (!loader)
      scan(source, (i) => { if (/^import\s*\(/.test(source.slice(i, i + 20)) && !(i > 0 && /[\w$.]/.test(source[i - 1]))) found.push(i); });
    for (const at of found.reverse()) source = `${source.slice(0, at)}__cella_import${source.slice(at + 6)}`;
    return source;
  }

  function compile(source, name) {
    return new vm.Script(withImports(source), { filename: name, importModuleDynamically: loader });
  }

  // Where a slash begins a regular expression: after an operator, an opening bracket or a word that wants a value.
  const wantsValue = (before) => /(^|[(,=:[!&|?{};+\-*%~^<>\n]|\b(return|typeof|case|in|of|do|else|await|void|delete))\s*$/.test(before);

  // The end of what begins at i with a quote, a slash or a comment: i itself when it is code.
  function skip(source, i) {
    const c = source[i], two = source.slice(i, i + 2), end = source.length;
    if (two === '//') { const at = source.indexOf('\n', i); return at < 0 ? end : at; }
    if (two === '/*') { const at = source.indexOf('*/', i + 2); return at < 0 ? end : at + 2; }
    if (c === '/' && wantsValue(source.slice(Math.max(0, i - 40), i))) {
      for (let at = i + 1, inClass = false; at < end && source[at] !== '\n'; at++) {
        if (source[at] === '\\') at++;
        else if (source[at] === '[') inClass = true;
        else if (source[at] === ']') inClass = false;
        else if (source[at] === '/' && !inClass) return at + 1;
      }
      return i;
    }
    if (c !== '"' && c !== "'" && c !== '`') return i;
    for (let at = i + 1; at < end; at++) {
      if (source[at] === '\\') at++;
      else if (source[at] === c) return at + 1;
      else if (c === '`' && source.startsWith('${', at)) at = closing(source, at + 2);
    }
    return end;
  }

  // Of a bracket that was opened before i.
  function closing(source, i) {
    for (let depth = 1; i < source.length; i++) {
      const next = skip(source, i);
      if (next > i) { i = next - 1; continue; }
      if (source[i] === '{') depth++;
      else if (source[i] === '}' && --depth === 0) return i;
    }
    return source.length;
  }

  // Characters that are code, as opposed to strings, comments and expressions; and how deep they stand.
  function scan(source, visit) {
    for (let i = 0, depth = 0; i < source.length; i++) {
      const next = skip(source, i), c = source[i];
      if (next > i) { i = next - 1; continue; }
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
      if (found && found[1]) edits.push([i, found[1].length, found[1] === 'let' ? 'var' : 'var  ']);
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

  // TypeScript without its types: node's own stripping, or a package that the image or its user has put there.
  function findStripper() {
    if (typeof Module.stripTypeScriptTypes === 'function')
      return (source) => Module.stripTypeScriptTypes(source, { mode: 'transform' });
    const from = [process.cwd(), path.resolve(process.execPath, '../../lib'), '/usr/lib', '/usr/local/lib', '/usr/share/nodejs'];
    const find = (name) => {
      for (const folder of from)
        for (const at of [path.join(folder, 'node_modules', name), path.join(folder, name)])
          if (fs.existsSync(path.join(at, 'package.json'))) return require(at);
      return null;
    };
    const compiler = find('typescript'), bundler = compiler ? null : find('esbuild');
    if (compiler) return (source) => {
      const compilerOptions = { target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true, alwaysStrict: false };
      const done = compiler.transpileModule(source, { compilerOptions, reportDiagnostics: true });
      const wrong = done.diagnostics.find((found) => found.category === 1 && found.code < 2000);
      if (wrong) throw new SyntaxError(compiler.flattenDiagnosticMessageText(wrong.messageText, '\n'));
      return done.outputText;
    };
    if (bundler) return (source) => {
      const options = { loader: 'ts', target: 'es2022', logLevel: 'silent', tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } } };
      try {
        return bundler.transformSync(source, options).code;
      } catch (error) {
        throw new SyntaxError(error.errors?.[0]?.text ?? error.message);
      }
    };
    return null;
  }
  const strip = TYPESCRIPT ? findStripper() : null;
  if (TYPESCRIPT && !strip) {
    fs.writeSync(2, `this is Node.js ${process.version}, without TypeScript`);
    process.exit(126);
  }

  // A cell as a script; or as an async function, where it awaits (of which not every error says so); or as it is, when it
  // was misread here: then the error, if there is one, is its own.
  function prepare(source, name) {
    const loose = loosen(imports(source));
    const ways = [() => loose, () => (/\bawait\b/.test(loose) ? asyncSource(loose) : source)];
    let wrong = null;
    for (const way of ways) {
      try {
        return compile(way(), name);
      } catch (error) {
        if (!wrong || /await/.test(wrong.message)) wrong = error;
      }
    }
    throw wrong;
  }

  // What is only promised is waited for: main() at the end of a cell is most of it.
  async function evaluate(source, name) {
    const value = prepare(strip ? strip(source) : source, name).runInThisContext({ breakOnSigint: true });
    if (!util.types.isPromise(value)) return value;
    const stop = new Promise((_, reject) => { interrupted = reject; });
    return await Promise.race([value, stop]);
  }

  // Without what is the kernel's or node's.
  const stackOf = (error) => String(error.stack).split('\n').filter((line) => !/node:|\[eval|evalmachine/.test(line)).join('\n');

  function putError(error) {
    status = 1;
    let name = 'Error', value = '', text = '';
    try {
      if (error instanceof Error || (error && typeof error.stack === 'string')) {
        name = String(error.name || 'Error');
        value = String(error.message);
        text = stackOf(error);
        for (let cause = error.cause, depth = 0; cause && depth < 10; cause = cause.cause, depth++)
          text += `\nCaused by: ${typeof cause.stack === 'string' ? stackOf(cause) : util.inspect(cause)}`;
      } else {
        name = 'Uncaught';
        value = util.inspect(error);
        text = `Uncaught ${value}`;
      }
      if (error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') [name, value, text] = ['KeyboardInterrupt', 'interrupted', 'KeyboardInterrupt: interrupted'];
      if (name === 'KeyboardInterrupt') status = 130;
    } catch { /* as far as it got */ }
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

  if (!loader) Object.defineProperty(globalThis, '__cella_import', { value: importFromHere });
  const inCwd = Module.createRequire(process.cwd() + '/');
  Object.assign(globalThis, {
    require: inCwd, module: new Module('<cell>'), exports: {}, __filename: '<cell>', __dirname: process.cwd(),
    display: (...values) => values.forEach((value) => putResult(bundle(value), false)),
  });
  const shown = { html: 'html', markdown: 'markdown', svg: 'svg', png: 'png', jpeg: 'jpeg', latex: 'latex', json: '*json', javascript: 'javascript' };
  for (const [name, format] of Object.entries(shown))
    globalThis.display[name] = (value) => {
      const data = typeof value === 'string' && name !== 'json' ? value : ArrayBuffer.isView(value) ? Buffer.from(value) : JSON.stringify(value);
      putResult({ [format]: data }, false);
    };
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
  write(2, Buffer.from('\x1e\x1ecella H\x1e'));
})();
