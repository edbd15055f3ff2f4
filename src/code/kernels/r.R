# SPDX-License-Identifier: Apache-2.0
#
# The R kernel: evaluates code in R's global environment, expression by expression, and tells what comes of it
# (src/code/frames.h). Base R has no descriptors: runs come through `from`, frames go through `to`, pipes that
# its start has laid (src/code/languages.c). What is printed goes straight to descriptor 1, and so is seen as it
# comes; messages are passed on as they are told, whatever else is written to stderr() after its expression.
local({
  count <- 0L
  status <- 0L
  CALLS_SHOWN <- 40
  FRAME_MAX <- 16777216L - 4096L
  plots <- tempfile("cella-plots-")
  dir.create(plots)

  u32 <- function(...) writeBin(as.integer(c(...)), raw(), endian = "little")
  bytes <- function(text) charToRaw(enc2utf8(paste(as.character(text), collapse = "\n")))
  sized <- function(text) { data <- bytes(text); c(u32(length(data)), data) }

  put <- function(kind, payload) {
    suspendInterrupts({
      writeBin(c(charToRaw(kind), u32(length(payload)), payload), to)
      flush(to)
    })
  }

  mark <- function(...) {
    cat("\036\036cella ", paste(...), "\036", sep = "", file = stdout())
    flush(stdout())
  }

  # --- stderr ---

  errors <- NULL
  open_errors <- function() {
    errors <<- rawConnection(raw(0), "w")
    sink(errors, type = "message")
  }
  flush_errors <- function() {
    data <- tryCatch(rawConnectionValue(errors), error = function(e) raw(0))
    if (length(data) == 0 && isTRUE(tryCatch(isOpen(errors), error = function(e) FALSE))) return(invisible())
    suppressWarnings(try(sink(type = "message"), silent = TRUE))
    try(close(errors), silent = TRUE)
    open_errors()
    put_error_text(data)
  }
  put_error_text <- function(data) {
    at <- 1
    while (at <= length(data)) {
      end <- min(length(data), at + 65535)
      put("E", data[at:end])
      at <- end + 1
    }
  }

  # --- results ---

  BASE64 <- c(LETTERS, letters, 0:9, "+", "/")
  base64 <- function(data) {
    pad <- (3 - length(data) %% 3) %% 3
    n <- matrix(as.integer(c(data, raw(pad))), nrow = 3)
    codes <- rbind(n[1, ] %/% 4L, n[1, ] %% 4L * 16L + n[2, ] %/% 16L, n[2, ] %% 16L * 4L + n[3, ] %/% 64L, n[3, ] %% 64L)
    out <- BASE64[codes + 1L]
    if (pad > 0) out[(length(out) - pad + 1):length(out)] <- "="
    paste(out, collapse = "")
  }

  json_string <- function(x) {
    x <- gsub("([\"\\\\])", "\\\\\\1", enc2utf8(as.character(x)))
    for (i in c(1:31)) if (any(grepl(intToUtf8(i), x, fixed = TRUE)))
      x <- gsub(intToUtf8(i), sprintf("\\u%04x", i), x, fixed = TRUE)
    paste0("\"", x, "\"")
  }
  json_column <- function(x) {
    text <- if (is.logical(x)) ifelse(x, "true", "false")
      else if (is.numeric(x) && !is.factor(x) && !inherits(x, c("Date", "POSIXt", "difftime")))
        ifelse(is.finite(x), format(x, digits = 15, trim = TRUE, scientific = NA), "null")
      else json_string(if (is.list(x)) vapply(x, function(v) paste(format(v), collapse = " "), "") else as.character(x))
    text[is.na(x)] <- "null"
    paste0("[", paste(text, collapse = ","), "]")
  }
  html_text <- function(x) gsub(">", "&gt;", gsub("<", "&lt;", gsub("&", "&amp;", x, fixed = TRUE), fixed = TRUE), fixed = TRUE)

  table_items <- function(x) {
    rows <- min(nrow(x), 10000L)
    data <- x[seq_len(rows), , drop = FALSE]
    labels <- if (.row_names_info(x) > 0) list(" " = rownames(data)[seq_len(min(rows, 60L))])
    shown <- as.data.frame(c(labels, lapply(data[seq_len(min(rows, 60L)), , drop = FALSE], function(v) html_text(trimws(format(v))))), optional = TRUE)
    cells <- if (nrow(shown) == 0) character() else
      apply(as.matrix(shown), 1, function(row) paste0("<tr>", paste0("<td>", row, "</td>", collapse = ""), "</tr>"))
    list(html = paste0("<table><thead><tr>", paste0("<th>", html_text(c(names(labels), names(x))), "</th>", collapse = ""), "</tr></thead><tbody>",
                       paste(cells, collapse = "\n"), "</tbody></table>"),
         "*data" = paste0("{", paste0(json_string(names(data)), ":", vapply(data, json_column, ""), collapse = ","), "}"))
  }

  put_result <- function(items, main) {
    payload <- list(as.raw(if (main) 1L else 0L))
    left <- FRAME_MAX
    for (name in names(items)) {
      data <- bytes(items[[name]])
      key <- name
      if (length(data) > left) {
        data <- bytes(sprintf("<%s of %d bytes is too large to be shown>", key, length(data)))
        key <- "text"
      }
      left <- left - length(data) - 300L
      payload <- c(payload, list(as.raw(nchar(key, "bytes")), charToRaw(key), u32(length(data)), data))
    }
    put("R", do.call(c, payload))
  }

  # What is drawn while a value is printed is a picture of its own; then it has no text, perhaps.
  show_value <- function(value, main) {
    text <- utils::capture.output(if (isS4(value)) methods::show(value) else print(value))
    items <- list()
    if (length(text) > 0) items$text <- paste(text, collapse = "\n")
    if (is.data.frame(value) && length(value) > 0) items <- c(items, tryCatch(table_items(value), error = function(e) list()))
    if (length(items) > 0) put_result(items, main)
  }

  device <- function(...) {
    file <- file.path(plots, paste0(length(list.files(plots)), "-%03d.png"))
    if (isTRUE(capabilities("cairo"))) grDevices::png(file, 800, 600, res = 96, type = "cairo") else grDevices::png(file, 800, 600, res = 96)
  }
  put_plots <- function() {
    if (length(list.files(plots)) == 0) return(invisible())
    try(grDevices::graphics.off(), silent = TRUE)
    for (file in sort(list.files(plots, full.names = TRUE))) {
      data <- readBin(file, "raw", file.size(file))
      unlink(file)
      if (length(data) > 0) put_result(list(text = "<plot>", png = base64(data)), FALSE)
    }
  }

  # --- cells ---

  # Calls of the code itself: those of the kernel stand before its eval().
  trace_of <- function(calls, value) {
    from <- max(c(0, which(vapply(calls, function(call) identical(call[[1]], quote(cella_eval)), NA))))
    if (from == 0) return(value)
    calls <- calls[seq_along(calls) > from + 3]
    calls <- Filter(function(call) !is.function(call[[1]]) && !(is.symbol(call[[1]]) && as.character(call[[1]]) %in% c(
      ".handleSimpleError", "h", "stop", "simpleError", "signalCondition", "withOneRestart", "withRestarts", "doWithOneRestart")), calls)
    if (length(calls) == 0) return(value)
    shown <- if (length(calls) > CALLS_SHOWN) c(seq_len(CALLS_SHOWN / 2), length(calls) - CALLS_SHOWN / 2 + seq_len(CALLS_SHOWN / 2)) else seq_along(calls)
    lines <- vapply(calls[shown], function(call) deparse(call, width.cutoff = 120)[1], "")
    c(value, "Traceback:", paste0("    ", shown, ". ", lines))
  }
  # Whether a condition's call is the code's, not one of ours around it.
  is_inner <- function(call) !is.null(call) && !identical(call, quote(eval(expression, globalenv()))) && !identical(call[[1]], quote(parse))
  put_error <- function(condition, calls) {
    if (status != 0L) return(invisible())
    status <<- 1L
    class <- setdiff(class(condition), c("simpleError", "condition"))
    call <- conditionCall(condition)
    name <- if (is.call(call) && identical(call[[1]], quote(parse))) "SyntaxError" else if (length(class) == 0 || class[1] == "error") "Error" else class[1]
    message <- conditionMessage(condition)
    inner <- is_inner(call)
    head <- if (inner) paste0("Error in ", deparse(call, width.cutoff = 120)[1], " : ", message) else paste0("Error: ", message)
    text <- paste(tryCatch(trace_of(calls, head), error = function(e) head), collapse = "\n")
    cut <- function(x) substr(x, 1L, 1000000L)
    put("X", c(sized(name), sized(cut(message)), sized(cut(text))))
  }

  cella_eval <- function(expression) withVisible(eval(expression, globalenv()))

  run_code <- function(source) {
    parsed <- parse(text = source, keep.source = TRUE, srcfile = srcfilecopy("<cell>", source))
    silent <- grepl(";[[:space:]]*$", source)
    for (i in seq_along(parsed)) {
      done <- cella_eval(parsed[[i]])
      if (done$visible && !(silent && i == length(parsed))) show_value(done$value, i == length(parsed))
      flush_errors()
    }
  }

  run_guarded <- function(source) {
    failed <- function(e) put_error(e, sys.calls())
    tryCatch(
      withCallingHandlers(run_code(source),
        message = function(m) { put_error_text(bytes(conditionMessage(m))); tryInvokeRestart("muffleMessage") },
        warning = function(w) {
          call <- conditionCall(w)
          where <- if (!is_inner(call)) "" else paste0(" in ", deparse(call, width.cutoff = 60)[1])
          put_error_text(bytes(paste0("Warning", where, ": ", conditionMessage(w), "\n")))
          tryInvokeRestart("muffleWarning")
        },
        error = failed),
      error = function(e) put_error(e, list()), # one that there was no room to look at where it was
      interrupt = function(e) {
        status <<- 130L
        put("X", c(sized("KeyboardInterrupt"), sized("interrupted"), sized("KeyboardInterrupt: interrupted")))
      })
  }

  run <- function(payload) {
    number <- readBin(payload[1:4], "integer", 1, endian = "little")
    env_size <- readBin(payload[5:8], "integer", 1, endian = "little")
    at <- 8L + env_size
    source <- if (length(payload) > at) rawToChar(payload[(at + 1L):length(payload)]) else ""
    Encoding(source) <- "UTF-8"
    before <- list()
    env <- if (env_size > 0L) payload[9:at] else raw(0)
    ends <- which(env == as.raw(0))
    begins <- c(0L, ends)[seq_along(ends)] + 1L
    for (i in seq_along(ends)) {
      pair <- rawToChar(env[begins[i]:(ends[i] - 1L)])
      name <- sub("=.*", "", pair)
      before[[name]] <- Sys.getenv(name, NA)
      do.call(Sys.setenv, structure(list(sub("^[^=]*=", "", pair)), names = name))
    }
    count <<- count + 1L
    status <<- 0L
    put("S", u32(number))
    mark("S", number)
    run_guarded(source)
    suspendInterrupts({
      while (sink.number() > 0) sink()
      flush_errors()
      try(put_plots(), silent = TRUE)
      for (name in names(before)) if (is.na(before[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, before[name])
      flush(stdout())
      put("D", u32(number, count, status))
      mark("D", number, count, status)
    })
  }

  # An interrupt that came too late for one run is not to hit the next one.
  next_request <- function() suspendInterrupts({
    head <- readBin(from, "raw", 5L)
    if (length(head) < 5L) quit("no")
    size <- readBin(head[2:5], "integer", 1, endian = "little")
    readBin(from, "raw", size)
  })

  options(device = device, warn = 1, browser = function(...) invisible())
  assign("display", function(...) for (value in list(...)) show_value(value, FALSE), envir = globalenv())
  open_errors()
  put("H", u32(1, 0, 0))
  mark("H")
  repeat {
    payload <- next_request()
    tryCatch(Sys.sleep(0), interrupt = function(e) NULL)
    run(payload)
  }
})
