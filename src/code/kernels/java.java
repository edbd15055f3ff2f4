// SPDX-License-Identifier: Apache-2.0
//
// The Java kernel: evaluates code with the JDK's own JShell, in this process, and tells what comes of it
// (src/code/frames.h) on descriptor 3. Runs come over stdin, one after the other. What children write to
// descriptors that they inherited goes past the kernel (src/code/pipe.h).

import java.awt.image.RenderedImage;
import java.io.*;
import java.lang.reflect.*;
import java.nio.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.function.Consumer;
import jdk.jshell.*;

public class Kernel {
    static final int FRAME_MAX = (16 << 20) - 4096, CHUNK = 65536, TEXT_MAX = 1 << 20, TRACE_MAX = 40;
    static final String[] IMPORTS = {"java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
        "java.util.function.*", "java.util.regex.*", "java.util.stream.*"};
    static final String DISPLAY = "cella.display"; // what the kernel's loader knows is not known to the code's: properties are to both

    static OutputStream channel;
    static PrintStream marks; // of the stream that children write to
    static JShell shell;
    static int count, status;
    static volatile boolean running, stopped;
    static final Map<String, int[]> origins = new HashMap<>(); // of snippets, by id: their cell, and the lines of it before them

    // --- frames ---

    static synchronized void put(char kind, byte[]... parts) {
        int size = 0;
        for (byte[] part : parts) size += part.length;
        ByteBuffer out = ByteBuffer.allocate(5 + size).order(ByteOrder.LITTLE_ENDIAN);
        out.put((byte) kind).putInt(size);
        for (byte[] part : parts) out.put(part);
        try {
            channel.write(out.array());
        } catch (IOException e) {
            Runtime.getRuntime().halt(1);
        }
    }

    static byte[] u32(int... values) {
        ByteBuffer out = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int value : values) out.putInt(value);
        return out.array();
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] sized(String text) {
        byte[] data = utf8(text.length() > TEXT_MAX ? text.substring(0, TEXT_MAX) : text);
        return ByteBuffer.allocate(4 + data.length).order(ByteOrder.LITTLE_ENDIAN).putInt(data.length).put(data).array();
    }

    static class Stream extends OutputStream {
        final char kind;

        Stream(char kind) {
            this.kind = kind;
        }

        @Override public void write(int b) {
            put(kind, new byte[] {(byte) b});
        }

        @Override public void write(byte[] data, int from, int length) {
            for (int end = from + length; from < end; from += CHUNK) put(kind, Arrays.copyOfRange(data, from, Math.min(end, from + CHUNK)));
        }
    }

    // --- results ---

    static void putResult(Map<String, String> items, boolean main) {
        List<byte[]> parts = new ArrayList<>();
        int left = FRAME_MAX;
        parts.add(new byte[] {(byte) (main ? 1 : 0)});
        for (Map.Entry<String, String> item : items.entrySet()) {
            String name = item.getKey();
            byte[] data = utf8(item.getValue());
            if (data.length > left) {
                data = utf8("<" + name + " of " + data.length + " bytes is too large to be shown>");
                name = "text";
            }
            left -= data.length + 300;
            parts.add(new byte[] {(byte) name.length()});
            parts.add(utf8(name));
            parts.add(u32(data.length));
            parts.add(data);
        }
        put('R', parts.toArray(new byte[0][]));
    }

    // A picture is shown as one, and what has a method toHtml(), toMarkdown() or toSvg() as it says.
    static Map<String, String> bundle(Object value, String text) {
        Map<String, String> items = new LinkedHashMap<>();
        items.put("text", text);
        try {
            if (value instanceof RenderedImage) {
                ByteArrayOutputStream png = new ByteArrayOutputStream();
                javax.imageio.ImageIO.write((RenderedImage) value, "png", png);
                items.put("png", Base64.getEncoder().encodeToString(png.toByteArray()));
            }
            for (String format : new String[] {"Html", "Markdown", "Svg"}) {
                Method method = value == null ? null : methodOf(value.getClass(), "to" + format);
                if (method != null) items.put(format.toLowerCase(Locale.ROOT), String.valueOf(method.invoke(value)));
            }
        } catch (Throwable e) { /* text is there */
        }
        return items;
    }

    static Method methodOf(Class<?> type, String name) {
        try {
            Method method = type.getMethod(name);
            method.setAccessible(true);
            return method.getReturnType() == String.class ? method : null;
        } catch (Exception e) {
            return null;
        }
    }

    static void show(Object values) {
        for (Object value : (Object[]) values) putResult(bundle(value, String.valueOf(value)), false);
    }

    // JShell tells a value as text. One whose type may have more to show is fetched.
    static void showLast(Snippet snippet, String text) {
        boolean kept = snippet instanceof VarSnippet; // JShell has given it a name
        String type = kept ? ((VarSnippet) snippet).typeName() : ((ExpressionSnippet) snippet).typeName();
        String name = kept ? ((VarSnippet) snippet).name() : ((ExpressionSnippet) snippet).name();
        Object value = null;
        if (type != null && !type.matches("(byte|short|int|long|char|float|double|boolean|String|Integer|Long|Double|Boolean|Character)(\\[\\])*")
                && !type.startsWith("java.util.") && name != null && !text.equals("null")) {
            shell.eval("System.getProperties().put(\"cella.value\", " + name + ");");
            value = System.getProperties().remove("cella.value");
        }
        putResult(bundle(value, text), true);
    }

    // --- errors ---

    static void putError(String name, String value, String traceback) {
        if (status == 0) status = 1;
        put('X', sized(name), sized(value), sized(traceback));
    }

    // JShell numbers snippets, of which a cell may have several: where they stand is told in lines of the cell.
    static String place(StackTraceElement at) {
        if (at.getFileName() == null) return "";
        int[] origin = at.getFileName().startsWith("#") ? origins.get(at.getFileName().substring(1)) : null;
        if (origin != null) return "<cell " + origin[0] + ">:" + (origin[1] + Math.max(at.getLineNumber(), 1));
        return at.getFileName() + (at.getLineNumber() > 0 ? ":" + at.getLineNumber() : "");
    }

    // The code's own frames: down to the method that JShell has wrapped it in.
    static void addTrace(StringBuilder out, JShellException error) {
        int lines = 0;
        for (StackTraceElement at : error.getStackTrace()) {
            boolean ours = at.getClassName().startsWith("REPL.");
            if (at.getClassName().startsWith("Kernel")) continue;
            if (++lines > TRACE_MAX) {
                out.append("\n    ...");
                break;
            }
            String type = ours ? at.getClassName().replaceAll("^REPL\\.\\$JShell\\$\\w+\\$?", "") : at.getClassName();
            boolean top = ours && at.getMethodName().equals("do_it$");
            String method = top ? "" : type.isEmpty() ? at.getMethodName() : type + "." + at.getMethodName();
            out.append("\n    at ").append(method).append(method.isEmpty() ? "" : " ").append("(" + place(at) + ")");
            if (top) break;
        }
    }

    static String className(JShellException error) {
        return error instanceof EvalException ? ((EvalException) error).getExceptionClassName() : "UnresolvedReference";
    }

    static void putException(JShellException error) {
        StringBuilder text = new StringBuilder();
        String value = error.getMessage() == null ? "" : error.getMessage();
        if (error instanceof UnresolvedReferenceException) {
            DeclarationSnippet snippet = ((UnresolvedReferenceException) error).getSnippet();
            value = "it refers to " + String.join(", ", (Iterable<String>) shell.unresolvedDependencies(snippet)::iterator) + ", which is not there";
        }
        String name = className(error);
        text.append(name).append(value.isEmpty() ? "" : ": " + value);
        addTrace(text, error);
        for (Throwable cause = error.getCause(); cause instanceof JShellException; cause = cause.getCause()) {
            text.append("\nCaused by: ").append(className((JShellException) cause));
            if (cause.getMessage() != null) text.append(": ").append(cause.getMessage());
            addTrace(text, (JShellException) cause);
        }
        putError(name.substring(name.lastIndexOf('.') + 1), value, text.toString());
    }

    static void putRejected(Snippet snippet) {
        StringBuilder text = new StringBuilder();
        String source = snippet.source(), first = null;
        for (Diag diag : (Iterable<Diag>) shell.diagnostics(snippet)::iterator) {
            if (!diag.isError()) continue;
            String message = diag.getMessage(Locale.ENGLISH);
            if (first == null) first = message.split("\n")[0];
            int at = (int) Math.max(0, Math.min(diag.getStartPosition(), source.length()));
            int begin = source.lastIndexOf('\n', at - 1) + 1, end = source.indexOf('\n', at);
            text.append("error: ").append(message).append('\n').append(source, begin, end < 0 ? source.length() : end).append('\n')
                .append(" ".repeat(at - begin)).append("^\n");
        }
        if (first == null) first = "the code can not be compiled";
        putError("CompileError", first, text.length() == 0 ? first : "CompileError: " + text.toString().stripTrailing());
    }

    // --- runs ---

    // false: that was the end of it.
    static boolean told(SnippetEvent event, boolean last) {
        if (event.causeSnippet() != null) return true; // what another one's change has done to it
        if (event.exception() != null) {
            if (stopped) interrupted();
            else putException(event.exception());
            return false;
        }
        if (event.status() == Snippet.Status.REJECTED) {
            putRejected(event.snippet());
            return false;
        }
        boolean isValue = event.snippet() instanceof ExpressionSnippet || event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
        if (last && event.value() != null && isValue) showLast(event.snippet(), event.value());
        return true;
    }

    static void interrupted() {
        status = 130;
        putError("KeyboardInterrupt", "interrupted", "KeyboardInterrupt: interrupted");
    }

    static void evaluate(String source) {
        SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
        boolean silent = source.stripTrailing().endsWith(";");
        for (String rest = source; !rest.isBlank();) {
            rest = rest.stripLeading(); // JShell counts lines from the first word
            int before = (int) source.substring(0, source.length() - rest.length()).chars().filter(c -> c == '\n').count();
            SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
            String next = info.completeness().isComplete() ? info.source() : rest;
            rest = info.completeness().isComplete() ? info.remaining() : "";
            for (SnippetEvent event : shell.eval(next)) {
                if (event.causeSnippet() == null) origins.put(event.snippet().id(), new int[] {count, before});
                if (!told(event, rest.isBlank() && !silent)) return;
            }
            if (stopped) {
                interrupted();
                return;
            }
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, String> environment() throws ReflectiveOperationException {
        Field map = Class.forName("java.util.Collections$UnmodifiableMap").getDeclaredField("m");
        map.setAccessible(true);
        return (Map<String, String>) map.get(System.getenv());
    }

    static void run(ByteBuffer request) {
        int number = request.getInt(), size = request.getInt();
        byte[] env = new byte[size], code = new byte[request.remaining() - size];
        request.get(env).get(code);
        Map<String, String> before = new LinkedHashMap<>();
        count++;
        status = 0;
        stopped = false;
        running = true;
        put('S', u32(number));
        marks.print("\036\036cella S " + number + "\036");
        marks.flush();
        try {
            for (String pair : new String(env, StandardCharsets.UTF_8).split("\0")) {
                int at = pair.indexOf('=');
                if (at <= 0) continue;
                before.put(pair.substring(0, at), environment().get(pair.substring(0, at)));
                environment().put(pair.substring(0, at), pair.substring(at + 1));
            }
            evaluate(new String(code, StandardCharsets.UTF_8));
            for (Map.Entry<String, String> was : before.entrySet())
                if (was.getValue() == null) environment().remove(was.getKey());
                else environment().put(was.getKey(), was.getValue());
        } catch (Throwable e) {
            putError(e.getClass().getSimpleName(), String.valueOf(e.getMessage()), e.toString());
        }
        running = false;
        System.out.flush();
        System.err.flush();
        put('D', u32(number, count, status));
        marks.print("\036\036cella D " + number + " " + count + " " + status + "\036");
        marks.flush();
    }

    // --- the world of the code ---

    static FileDescriptor descriptor(int number) throws ReflectiveOperationException {
        Constructor<FileDescriptor> made = FileDescriptor.class.getDeclaredConstructor(int.class);
        made.setAccessible(true);
        return made.newInstance(number);
    }

    static class NoInput extends InputStream {
        @Override public int read() throws IOException {
            throw new IOException("System.in is not available: a run has no stdin");
        }
    }

    static void open() throws Exception {
        channel = new FileOutputStream(descriptor(3));
        marks = new PrintStream(new FileOutputStream(FileDescriptor.err));
        System.setIn(new NoInput());
        System.setOut(new PrintStream(new BufferedOutputStream(new Stream('O')), true, "UTF-8"));
        System.setErr(new PrintStream(new BufferedOutputStream(new Stream('E')), true, "UTF-8"));
        System.setProperty("java.awt.headless", "true");
        System.getProperties().put(DISPLAY, (Consumer<Object>) Kernel::show);
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> {
            if (!running) return;
            stopped = true;
            shell.stop();
        });
        shell = JShell.builder().executionEngine("local").out(System.out).err(System.err).build();
        for (String name : IMPORTS) shell.eval("import " + name + ";");
        shell.eval("void display(Object... values) { ((java.util.function.Consumer<Object>) System.getProperties().get(\"" + DISPLAY
                + "\")).accept(values); }");
    }

    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        open();
        put('H', u32(1, 0, 0));
        marks.print("\036\036cella H\036");
        marks.flush();
        for (byte[] head = new byte[5];;) {
            try {
                in.readFully(head);
            } catch (EOFException e) {
                Runtime.getRuntime().halt(0);
            }
            byte[] payload = new byte[ByteBuffer.wrap(head, 1, 4).order(ByteOrder.LITTLE_ENDIAN).getInt()];
            in.readFully(payload);
            run(ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN));
        }
    }
}
