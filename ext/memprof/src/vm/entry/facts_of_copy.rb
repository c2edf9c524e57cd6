# frozen_string_literal: true

# Threads and global variables as seen by Ruby, in a copy of a process that has not loaded memprof. Nothing
# here waits, reads a file, or calls methods that a subclass of Thread may have redefined: only this thread
# runs in the copy.

# Frames of the copied thread's own code, without this one and that of Binding#eval.
depth = caller(0).size - 2
->(contents, fibers) do
  describe = Kernel.instance_method(:to_s)
  ask = ->(thread, name, *arguments) do
    Thread.instance_method(name).bind_call(thread, *arguments)
  end
  json = ->(value) do
    case value
    when nil then "null"
    when true, false, Integer then value.to_s
    when Array then "[#{value.map(&json).join(",")}]"
    when Hash then "{#{value.map { |key, held| "#{json.(key)}:#{json.(held)}" }.join(",")}}"
    else
      text = value.to_s
      utf8 = text.encoding == Encoding::UTF_8
      text = utf8 ? text.scrub : text.encode("UTF-8", invalid: :replace, undef: :replace)
      "\"#{text.gsub(/["\\\x00-\x1f\x7f]/) { |one| format("\\u%04x", one.ord) }}\""
    end
  end
  hidden = "(hidden)"
  fixnums = -(2**62)..(2**62 - 1)
  encode = ->(value) do
    case value
    when nil, true, false then value
    when Integer, Float, Symbol
      next hidden unless contents

      value.is_a?(Symbol) ? ":#{value.name}" : (fixnums.cover?(value) ? value : value.to_s)
    else "0x#{describe.bind_call(value)[/:0x0*(\h+)>\z/, 1]}"
    end
  end
  table = ->(thread, list, read) do
    names = ask.(thread, list)
    names.to_h { |name| [":#{name}", encode.(ask.(thread, read, name))] } unless names.empty?
  end
  # Evaluated code may have any file name, chosen by the program.
  frame = ->(location) do
    line = location.to_s
    contents || location.absolute_path ? line : hidden + line.delete_prefix(location.path.to_s)
  end
  states = { false => "dead", nil => "raised" }
  facts = Thread.list.each_with_object({}.compare_by_identity) do |thread, all|
    status = ask.(thread, :status)
    frames = ask.(thread, :backtrace_locations)
    frames = frames&.last(depth) if thread.equal?(Thread.current)
    all[thread] = json.({
      "status" => states.fetch(status, status), "name" => ask.(thread, :name),
      "priority" => ask.(thread, :priority),
      "main" => thread.equal?(Thread.main) || nil, "current" => thread.equal?(Thread.current) || nil,
      "native_thread_id" => ask.(thread, :native_thread_id), "variables" => table.(thread, :keys, :[]),
      "thread_variables" => table.(thread, :thread_variables, :thread_variable_get),
      "backtrace" => frames&.first(100)&.map(&frame)
    }.compact)
  end
  # A running fiber is on its thread's stack.
  suspended = fibers && ObjectSpace.each_object(Fiber).filter_map do |fiber|
    text = Fiber.instance_method(:inspect).bind_call(fiber)
    created_at, status = text.match(/\A#<\S+(?: (.*))? \((suspended[\w ]*)\)>\z/m)&.captures
    next unless status

    frames = Fiber.instance_method(:backtrace).bind_call(fiber)
    { "status" => status, "created_at" => created_at, "backtrace" => frames&.first(100) }.compact
  end
  of_a_frame = %i[$~ $& $` $' $+ $_ $LAST_MATCH_INFO $MATCH $PREMATCH $POSTMATCH $LAST_PAREN_MATCH
    $LAST_READ_LINE]
  others = %i[$= $IGNORECASE $KCODE $-K $SAFE $FILENAME $VERBOSE $-v $-w $-W]
  names = (global_variables - of_a_frame - others).grep_v(/\A\$\d/)
  verbose = $VERBOSE
  $VERBOSE = nil
  globals = names.filter_map do |name|
    [name.name, eval(name.name, binding, __FILE__, __LINE__)] # rubocop:disable Security/Eval -- Ruby's own list
  rescue Exception # rubocop:disable Lint/RescueException -- a getter of C code may raise what it likes
    nil
  end
  $VERBOSE = verbose
  compactions = GC.stat[:compact_count].to_i
  compacts = GC.respond_to?(:auto_compact) && GC.auto_compact ? true : false
  about = {
    "ruby" => RUBY_DESCRIPTION, "ruby_version" => RUBY_VERSION, "platform" => RUBY_PLATFORM,
    "generation" => GC.count, "gc_count" => GC.count, "compactions" => compactions,
    "auto_compact" => compacts, "moved" => compacts || compactions.positive?, "tracking" => false,
    "ractors" => Ractor.count
  }
  about.update("program" => $PROGRAM_NAME, "arguments" => ARGV.grep(String)) if contents
  [facts, globals, json.(about), json.(suspended || nil)]
end
