# frozen_string_literal: true

# The first code evaluated in a process that `memprof attach` has connected to, on a separate thread. The
# command sends it, followed by memprof's files: the process reads only the extension from disk, as each file
# lookup or read waits for busy threads.
input = Thread.current[:memprof_attached]
output = IO.for_fd(input.fileno, "wb", autoclose: false)
output.sync = true
output.write("{\"begun\":true}\n")
begin
  # In few reads, unlike IO#read: each gives up the GVL.
  rest = input.gets("\n").to_i
  bytes = "".b
  bytes << input.readpartial(rest - bytes.bytesize) until bytes.bytesize == rest
  sent = Marshal.load(bytes) # rubocop:disable Security/MarshalLoad -- sent by the process that traces this one
  library, extension, sources, request = sent.values_at(:library, :extension, :sources, :request)
  raise FrozenError, "nothing can be loaded: $LOADED_FEATURES is frozen" if $LOADED_FEATURES.frozen?

  added = !$LOAD_PATH.frozen? && !$LOAD_PATH.include?(library)
  $LOAD_PATH.push(library) if added
  # RubyGems would search all gems first.
  load = respond_to?(:gem_original_require, true) ? method(:gem_original_require) : method(:require)
  missing = sources.reject { |path, _| $LOADED_FEATURES.include?(path) }
  # Before any is evaluated: otherwise memprof's autoloads would read files.
  $LOADED_FEATURES.concat(missing.keys)
  until missing.empty?
    path, code = missing.first
    begin
      # A file that failed before has already defined some of its constants.
      if (silenced = Thread.main.thread_variable_get(:memprof_failed) == path)
        verbose = $VERBOSE
        $VERBOSE = nil
      end
      load.call(extension) if path == "#{library}/memprof/native.rb"
      RubyVM::InstructionSequence.compile(code, path, path).eval
    ensure
      $VERBOSE = verbose if silenced
    end
    missing.delete(path)
  end
  Memprof::Attached.new(input, output, library).run(request)
rescue Exception => e # rubocop:disable Lint/RescueException -- goes to the command that asked
  # Without the gem json, which may not be loaded.
  place = e.backtrace&.first
  place = nil if place&.start_with?("memprof attach")
  text = "#{e.class}: #{e.message.to_s.lines.first}#{" (#{place})" if place}".b.gsub(/[^ !#-\[\]-~]/n, "?")
  output.write("{\"error\":\"#{text}\"}\n") unless IO.select([input], nil, nil, 0)
ensure
  $LOAD_PATH.delete(library) if added
  unless missing.nil? || missing.empty?
    Thread.main.thread_variable_set(:memprof_failed, path)
    missing.each_key { |name| $LOADED_FEATURES.delete(name) }
  end
end
