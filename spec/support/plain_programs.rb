# frozen_string_literal: true

require "rbconfig"

# Programs that have not loaded memprof.
module PlainPrograms
  # Runs Ruby code, which prints "ready" when it is. Yields its process id, its output, and its input; after
  # the block, kills it with all its children.
  def plain_program(code, *command, env: {})
    stdin, held = IO.pipe # a reader blocks until the program ends
    output, stdout = IO.pipe
    program = [*command, RbConfig.ruby, "-e", "$stdout.sync = true\n#{code}"]
    pid = Process.spawn({ "RUBYOPT" => nil, **env }, *program,
      in: stdin, out: stdout, pgroup: true)
    [stdin, stdout].each(&:close)
    raise "does not start" unless output.gets == "ready\n"

    yield(pid, output, held)
  ensure
    if pid
      Process.kill(:KILL, -pid)
      Process.wait(pid)
    end
    [held, output].each { |io| io&.close }
  end
end
