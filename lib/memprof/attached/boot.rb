# frozen_string_literal: true

# What a process evaluates first that `memprof attach` has connected to, on a thread of its own. The command
# sends it, and then the files of memprof: the process reads none of them, as each that it read would take as
# long as its busy threads please.
input = Thread.current[:memprof_attached]
output = IO.for_fd(input.fileno, "wb", autoclose: false)
output.sync = true
output.write("{\"begun\":true}\n")
begin
  library, sources, request = Marshal.load(input) # rubocop:disable Security/MarshalLoad -- sent by who traces it
  added = !$LOAD_PATH.include?(library)
  $LOAD_PATH.push(library) if added
  sources.each do |path, code|
    next if $LOADED_FEATURES.include?(path)

    # Before it is evaluated: what memprof loads automatically would be read else.
    $LOADED_FEATURES << path
    RubyVM::InstructionSequence.compile(code, path, path).eval
  end
  Memprof::Attached.new(input, output, library).run(request)
rescue Exception => e # rubocop:disable Lint/RescueException -- goes to the command that asked
  # Without the gem json, which may not be loaded.
  text = "#{e.class}: #{e.message.to_s.lines.first}".b.gsub(/[^ !#-\[\]-~]/n, "?")
  output.write("{\"error\":\"#{text}\"}\n") unless IO.select([input], nil, nil, 0)
ensure
  $LOAD_PATH.delete(library) if added
end
