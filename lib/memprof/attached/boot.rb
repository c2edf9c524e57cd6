# frozen_string_literal: true

# What `memprof attach` has a process load, on a thread of its own. The line of Ruby that loads it may be
# evaluated more than once; and if memprof has given up meanwhile there is nothing to do.
directory = Thread.current[:memprof_attached]
asked = begin
  File.rename(File.join(directory, "request"), File.join(directory, "started"))
rescue SystemCallError
  nil
end

if asked
  library = File.expand_path("../..", __dir__)
  added = !$LOAD_PATH.include?(library)
  $LOAD_PATH.push(library) if added
  begin
    require "memprof"
    require "memprof/attached"
    Memprof::Attached.new(directory, library).run
  rescue Exception => e # rubocop:disable Lint/RescueException -- goes to the command that asked
    File.write(File.join(directory, "answer.new"), "#{e.class}: #{e.message.to_s.lines.first}")
    File.rename(File.join(directory, "answer.new"), File.join(directory, "failed"))
  ensure
    $LOAD_PATH.delete(library) if added
  end
end
