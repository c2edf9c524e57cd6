# frozen_string_literal: true

require "json"

# What listens at the socket of a process, and what it answers to root.
RSpec.describe "memprof, asking a process whose socket is hostile" do
  include HostileProcesses

  # Code of a process that listens at its own socket, and does something with each client after its request.
  def answering(code)
    <<~RUBY
      require "socket"
      server = UNIXServer.new(File.join(ENV.fetch("MEMPROF_DIR"), "memprof-\#{$$}.sock"))
      puts "ready"
      loop do
        Thread.new(server.accept) do |client|
          client.gets
          #{code}
        rescue SystemCallError
          nil # the command has gone
        end
      end
    RUBY
  end

  # All that is asked over the socket.
  def verbs(pid)
    [["dump", "--pid", pid, "--timeout", 5], ["start", "--pid", pid], ["stats", "--pid", pid],
      ["stop", "--pid", pid], ["memory", pid], ["memory", "--workers", pid],
      ["attach", pid, "--track", "--for", 0.1]]
  end

  # Of the memory of processes that don't answer, /proc says something.
  def expect_refused(lines)
    commands = all_bounded(lines, seconds: 120)
    lines.zip(commands) do |line, command|
      next if line.first == "memory"

      expect(command.status.exitstatus).to eq(2), "#{line}: #{command.stderr}"
    end
  end

  it "takes no more of an endless line than it has memory for" do
    code = answering("loop { client.write('{\"ok\":true,' + ' ' * (1 << 20)) }")
    foreign_program(code) { |program| expect_refused(verbs(program.pid)) }
  end

  it "does not take many short lines for one answer either" do
    code = answering("loop { client.write(\"\\n\" * (1 << 20)) }")
    foreign_program(code) { |program| expect_refused(verbs(program.pid)) }
  end

  it "does not wait for ever for the rest of a line, nor for one that comes byte by byte" do
    silent = answering("client.write('{\"ok\":true,'); sleep")
    slow = answering("client.write('{\"ok\":true,\"x\":\"'); loop { client.write('x'); sleep(0.5) }")
    foreign_program(silent) do |first|
      foreign_program(slow) do |second|
        expect_refused([first, second].flat_map { |program| verbs(program.pid) })
      end
    end
  end

  it "does without the answer of a process that is silent, where /proc knows enough" do
    foreign_program(answering("sleep")) do |program|
      memory = bounded("memory", program.pid)
      reason = "no answer within 5 s; shown is what /proc knows"
      expect(memory.stderr).to include("process #{program.pid}: #{reason}")
      expect([memory.stdout, memory.status.exitstatus]).to match([/\A#{program.pid}: RSS /, 0])
    end
  end

  it "does not wait for ever to be accepted" do
    full = <<~RUBY
      require "socket"
      path = File.join(ENV.fetch("MEMPROF_DIR"), "memprof-\#{$$}.sock")
      server = UNIXServer.new(path)
      server.listen(0)
      clients = []
      begin
        loop { clients << Socket.new(:UNIX, :STREAM).tap { |one| one.connect_nonblock(Addrinfo.unix(path)) } }
      rescue Errno::EAGAIN, IO::WaitWritable
        puts "ready"
      end
      sleep
    RUBY
    foreign_program(full) { |program| all_bounded(verbs(program.pid)) }
  end

  wrong = {
    "nested deeply" => "{\"ok\":true,\"lines\":#{"[" * 50_000}#{"]" * 50_000}}",
    "an array" => "[1,2]", "a number" => "7", "null" => "null", "no JSON" => "ok",
    "with an error that is not text" => '{"ok":false,"error":{"a":["b"]}}',
    "with an error that acts on the terminal" => "{\"ok\":false,\"error\":\"\\u001b]0;x\\u0007\\n\\u202e\"}",
    "with a path that is not text" => '{"ok":true,"path":{"a":1},"lines":7,"memory":7,"changed":7}',
    "with a path that has a null byte" => "{\"ok\":true,\"path\":\"/tmp/\\u0000\",\"memory\":null}",
    "with an endless path" => "{\"ok\":true,\"path\":\"/#{"a" * 100_000}\"}",
    "with memory of another form" =>
      '{"ok":true,"memory":{"rss":"x","items":[{"bytes":[]}]},"path":"/a","lines":{"a":{"b":1}}}',
    "with numbers beyond all bounds" =>
      "{\"ok\":true,\"memory\":{\"rss\":1e400,\"items\":[]},\"lines\":[#{"9" * 5000}]}",
    "with bytes that are not text" => "{\"ok\":false,\"error\":\"\xFF\xFE\"}"
  }
  wrong.each do |what, answer|
    it "does not crash over an answer #{what}" do
      lines = "2.times { client.write(#{answer.b.dump}, \"\\n\") }; client.close"
      foreign_program(answering(lines)) { |program| all_bounded(verbs(program.pid)) }
    end
  end

  describe "a socket of another process" do
    # Has loaded memprof/signal, and says what it was asked to do.
    let(:honest) do
      <<~'RUBY'
        require "memprof/signal"
        path = File.join(ENV.fetch("MEMPROF_DIR"), "memprof-#{$$}.sock")
        sleep(0.01) until File.socket?(path)
        DONE = []
        Memprof.singleton_class.prepend(Module.new do
          %i[start stop memory dump_all].each do |name|
            define_method(name) { |*given, **options| DONE << name && super(*given, **options) }
          end
        end)
        puts "ready"
        p DONE while gets
      RUBY
    end

    it "does what this user asks" do # else the examples below would prove nothing
      tracking do |program|
        bounded("start", "--pid", program.pid)
        bounded("stop", "--pid", program.pid)
        expect(program.ask("what")).to eq("[:start, :stop]")
      end
    end

    def tracking(**options, &block)
      foreign_program(honest, env: { "MEMPROF_TRACK" => "off" }, ruby_args: ["-I#{ChildRuby::LIB}"],
        **options, &block)
    end

    # None of the requests reaches the other one.
    def spares(other, pid)
      all_bounded(verbs(pid))
      expect(other.ask("what")).to eq("[]")
    end

    it "is not asked when it is linked to the name of this one's" do
      with_home do |home|
        tracking(home: home) do |other|
          linking = <<~RUBY
            File.link("#{home}/memprof-#{other.pid}.sock", "#{home}/memprof-\#{$$}.sock")
            puts "ready"
            sleep
          RUBY
          foreign_program(linking, home: home) { |program| spares(other, program.pid) }
        end
      end
    end

    it "is not asked when a symbolic link leads to it" do
      with_home do |home|
        tracking(home: home) do |other|
          linking = <<~RUBY
            File.symlink("#{home}/memprof-#{other.pid}.sock", "#{home}/memprof-\#{$$}.sock")
            puts "ready"
            sleep
          RUBY
          foreign_program(linking, home: home) { |program| spares(other, program.pid) }
        end
      end
    end

    it "is not asked when a user mounts root's over its own" do
      unless system(*as(HostileProcesses::MALLORY), "unshare", "-Urm", "true", err: File::NULL)
        skip "users may not make namespaces here"
      end
      tracking(uid: 0) do |other|
        File.chmod(0o755, other.home)
        mounting = <<~RUBY
          mine = "\#{ENV.fetch("TMPDIR")}/memprof-\#{$$}.sock"
          File.write(mine, "")
          system("mount", "--bind", "#{other.home}/memprof-#{other.pid}.sock", mine) or abort
          puts "ready"
          sleep
        RUBY
        wrapper = [*as(HostileProcesses::MALLORY), "unshare", "-Urm"]
        foreign_program(mounting, *wrapper, uid: nil) do |program|
          # Whether the stage is set: the name leads to the other's socket.
          path = "/proc/#{program.pid}/root#{program.home}/memprof-#{program.pid}.sock"
          expect(File.socket?(path)).to be(true)
          spares(other, program.pid)
        end
      end
    end

    it "is not asked when another process of that user listens in its place" do
      with_home do |home|
        foreign_program("puts :ready; sleep", home: home) do |program|
          listening = <<~RUBY
            require "socket"
            server = UNIXServer.new("#{home}/memprof-#{program.pid}.sock")
            puts "ready"
            heard = []
            Thread.new { loop { Thread.new(server.accept) { |one| (heard << one.gets).compact! } } }
            puts heard.size while gets
          RUBY
          foreign_program(listening, home: home) do |listener|
            all_bounded(verbs(program.pid), seconds: 90)
            expect(listener.ask("heard")).to eq("0")
          end
        end
      end
    end
  end
end
