# frozen_string_literal: true

require "json"

# Files of `memprof attach` in a directory of the target's user, and answers of a target.
RSpec.describe "memprof attach, to a process of a hostile user" do
  include HostileProcesses

  # A second process of that user, which watches the directory of the first one.
  def attacker(code, home, &block)
    prelude = <<~RUBY
      home = ENV.fetch("TMPDIR")
      victim = ENV.fetch("VICTIM")
      # Directories that the command has there.
      found = -> { Dir.children(home).grep(/memprof-/).map { |name| File.join(home, name) } }
    RUBY
    foreign_program("#{prelude}#{code}", home: home, env: { "VICTIM" => @victim }, &block)
  end

  def victim(*names)
    with_victim(*names) do |path|
      @victim = path
      with_home { |home| yield(path, home) }
    end
  end

  def thread_of?(pid)
    Dir.glob("/proc/#{pid}/task/*/comm").any? { |path| File.read(path).start_with?("memprof attach") }
  rescue SystemCallError
    false
  end

  # Attaches while both programs run, and interrupts it once the target tracks and the attacker has done what
  # it can, if there is something to be done.
  def attach_and_interrupt(program)
    command = start_memprof("attach", program.pid, "--track", "--for", 1000)
    eventually("tracking: #{command.stderr}") { thread_of?(program.pid) || !command.running? }
    eventually("the attack") { !command.running? || yield }
    sleep(0.05) # for more than one look
    Process.kill(:INT, command.pid) if command.running?
    failure = command.finish(60)
    expect(failure).to be_nil
    expect(command.stderr).not_to match(HostileProcesses::CRASH)
  end

  names = %w[request started stop answer answer.new failed]

  it "writes and removes nothing through links at Ctrl-C" do
    victim("mine") do |path, home|
      foreign_program("puts :ready; sleep", home: home) do |program|
        attacker(<<~RUBY, home) do |links|
          puts "ready"
          loop do
            found.call.each do |directory|
              next unless File.exist?("\#{directory}/started")

              %w[stop answer.new failed].each { |name| File.symlink("\#{victim}/mine", "\#{directory}/\#{name}") }
              puts "planted"
              sleep
            end
          rescue SystemCallError
            nil
          end
        RUBY
          leaves_alone(path) do
            attach_and_interrupt(program) { links.output.wait_readable(0) || found_nothing?(home) }
          end
        end
      end
    end
  end

  it "writes and removes nothing in a directory that takes the place of its own at Ctrl-C" do
    victim(*names) do |path, home|
      foreign_program("puts :ready; sleep", home: home) do |program|
        attacker(<<~RUBY, home) do |links|
          puts "ready"
          loop do
            found.call.each do |directory|
              next unless File.exist?("\#{directory}/started")

              File.rename(directory, "\#{home}/aside")
              File.symlink(victim, directory)
              puts "planted"
              sleep
            end
          rescue SystemCallError
            nil
          end
        RUBY
          leaves_alone(path) do
            attach_and_interrupt(program) { links.output.wait_readable(0) || found_nothing?(home) }
          end
        end
      end
    end
  end

  def found_nothing?(home) = Dir.children(home).grep(/memprof-/).empty?

  # A race; today it is won in most tries.
  it "gives no directory or file of root's away" do
    victim("mine") do |path, home|
      foreign_program("puts :ready; sleep", home: home) do |program|
        attacker(<<~RUBY, home) do
          puts "ready"
          loop do
            found.call.each do |directory|
              next if File.symlink?(directory)

              File.rename(directory, "\#{home}/aside-\#{rand}")
              File.symlink(victim, directory)
            end
          rescue SystemCallError
            nil
          end
        RUBY
          File.write("code.rb", "1 + 1")
          8.times do
            leaves_alone(path) { bounded("attach", program.pid, "--eval", "code.rb", "--timeout", 2) }
          end
        end
      end
    end
  end

  it "gives no file of root's away that takes the place of its request" do
    victim("mine") do |path, home|
      foreign_program("puts :ready; sleep", home: home) do |program|
        attacker(<<~RUBY, home) do
          puts "ready"
          seen = {}
          loop do
            found.call.each do |directory|
              next if seen[directory] || File.basename(directory).start_with?("memprof-mine")

              mine = "\#{home}/memprof-mine-\#{rand}"
              Dir.mkdir(mine)
              File.symlink("\#{victim}/mine", "\#{mine}/request")
              seen[directory] = true
              File.rename(directory, "\#{home}/aside-\#{rand}")
              File.rename(mine, directory)
            end
          rescue SystemCallError
            nil
          end
        RUBY
          File.write("code.rb", "1 + 1")
          8.times do
            leaves_alone(path) { bounded("attach", program.pid, "--eval", "code.rb", "--timeout", 2) }
          end
        end
      end
    end
  end

  %i[chroot pivot].each do |kind|
    it "makes nothing on the host for a process whose directory is a link (#{kind})" do
      with_victim do |path|
        contained_program("puts :ready; sleep", kind, prepare: "ln -s #{path} inside/tmp",
          env: { "TMPDIR" => "/inside/tmp" }) do |program|
          File.write("code.rb", "1 + 1")
          leaves_alone(path) { bounded("attach", program.pid, "--eval", "code.rb", "--timeout", 3) }
        end
      end
    end

    it "takes nothing on the host for its own library (#{kind})" do
      with_victim do |path|
        library = File.dirname(ChildRuby::LIB)
        contained_program("puts :ready; sleep", kind, library: "",
          prepare: "mkdir -p .#{File.dirname(library)} && ln -s #{path} .#{library}") do |program|
          File.write("code.rb", "1 + 1")
          leaves_alone(path) { refused("attach", program.pid, "--eval", "code.rb", "--timeout", 3) }
        end
      end
    end
  end

  # The target gets the file without a name; what it does to links and directories of its own changes nothing.
  it "writes a recording to root's own file only, whatever the target does to names" do
    victim("mine") do |path, home|
      foreign_program("puts :ready; loop { $keep = 'x' * 10_000; sleep(0.01) }", home: home) do |program|
        attacker(<<~RUBY, home) do
          puts "ready"
          loop do
            found.call.each do |directory|
              Dir.children(directory).grep(/malloc|record/).each do |name|
                File.rename("\#{directory}/\#{name}", "\#{home}/aside-\#{rand}")
                File.symlink("\#{victim}/mine", "\#{directory}/\#{name}")
              end
            end
          rescue SystemCallError
            nil
          end
        RUBY
          leaves_alone(path) do
            bounded("attach", program.pid, "--malloc", "--for", 1, "-o", "out.malloc", seconds: 100)
          end
          out = File.lstat("out.malloc")
          expect([out.file?, out.uid, out.mode & 0o777, out.nlink]).to eq([true, 0, 0o600, 1])
          expect(Dir["/proc/#{program.pid}/fd/*"].map { |fd|
                   File.readlink(fd)
                 }.grep(/out\.malloc/)).to eq([])
          result = run_memprof("malloc", "--json", File.expand_path("out.malloc"))
          expect(JSON.parse(result.stdout)["complete"]).to be(true)
        end
      end
    end
  end

  # The target itself decides what memprof's own code there does, which writes answers as JSON.
  describe "with an answer of its own" do
    def answering(expression)
      <<~RUBY
        Thread.new do
          Thread.pass until defined?(Memprof::Attached) && Memprof::Attached.private_method_defined?(:answer)
          Memprof::Attached.prepend(Module.new do
            define_method(:json) { |*| puts "answers"; #{expression} }
          end)
        end
        puts "ready"
        loop { sleep(0.01) }
      RUBY
    end

    def attach(program)
      File.write("code.rb", "sleep(0.2)")
      command = bounded("attach", program.pid, "--eval", "code.rb", "--timeout", 20, seconds: 100)
      eventually("the end of its files") { program.files.empty? }
      expect(program.output.gets).to eq("answers\n")
      command
    end

    it "takes no more of it than it has memory for" do
      foreign_program(answering('"{" + " " * (700 << 20)')) do |program|
        expect(attach(program).status.exitstatus).to eq(2)
      end
    end

    {
      "nested deeply" => '"[" * 50_000 + "]" * 50_000', "an array" => '"[1,2]"', "a number" => '"7"',
      "null" => '"null"', "a string" => '"\"error\""', "nothing" => '""',
      "lines that are none" => '"{\"lines\":{\"a\":[{}]}}"',
      "an error that is none" => '"{\"error\":{\"a\":1},\"at\":[7]}"',
      "bytes that are not text" => '"{\"error\":\"\xFF\"}".b',
      "escape sequences" => '"{\"error\":\"\\\\u001b]0;x\\\\u0007\\\\u202e\",\"lines\":[\"\\\\u001b[31m\"]}"'
    }.each do |what, expression|
      it "does not crash over #{what}" do
        foreign_program(answering(expression)) { |program| attach(program) }
      end
    end

    it "waits no longer than --timeout for one that stops at its middle" do
      foreign_program(answering("sleep")) do |program|
        bounded("attach", program.pid, "--track", "--for", 0.1, "--timeout", 1, seconds: 100)
        expect(program.files).to be_empty
      end
    end
  end
end
