# frozen_string_literal: true

require "json"
require "zlib"

# Where a process says that its dump is: root must not read, move or remove anything else.
RSpec.describe "memprof dump --pid, of a process that lies about its dump" do
  include HostileProcesses

  mallory = HostileProcesses::MALLORY
  memprof = ["-I#{ChildRuby::LIB}"]

  # Code of a process that answers a request for a dump with a path.
  def naming(path)
    <<~RUBY
      require "socket"
      server = UNIXServer.new(File.join(ENV.fetch("MEMPROF_DIR"), "memprof-\#{$$}.sock"))
      puts "ready"
      loop do
        client = server.accept
        client.gets
        client.puts(#{JSON.generate(ok: true, path: path).dump})
        client.puts(#{JSON.generate(ok: true, bytes: 1, objects: 1).dump})
        client.close
      rescue SystemCallError
        nil # the command has gone
      end
    RUBY
  end

  # What the command has stored, uncompressed.
  def stored
    paths = Dir.glob("{library/**/*,*.json}").select { |path| File.file?(path) }
    paths.map { |path|
      bytes = File.binread(path)
      bytes.start_with?("\x1F\x8B".b) ? Zlib.gunzip(bytes) : bytes
    }.join
  end

  def expect_nothing_taken(program, victim)
    aggregate_failures do
      leaves_alone(victim) { bounded("dump", "--pid", program.pid, "--timeout", 10) }
      expect(stored).not_to include(HostileProcesses::SECRET)
    end
  end

  describe "over its socket" do
    it "takes no file of that user's from where the user can't get at it" do
      with_victim("heap.json", uid: mallory) do |victim|
        foreign_program(naming("#{victim}/heap.json")) { |program| expect_nothing_taken(program, victim) }
      end
    end

    it "takes no file through a directory that is a link" do
      with_victim("heap.json", uid: mallory) do |victim|
        with_home do |home|
          File.symlink(victim, "#{home}/escape")
          foreign_program(naming("#{home}/escape/heap.json"), home: home) do |program|
            expect_nothing_taken(program, victim)
          end
        end
      end
    end

    %i[chroot pivot].each do |kind|
      { "another user" => mallory, "root" => 0 }.each do |who, uid|
        it "takes no file of the host through a link of #{who} in a container (#{kind})" do
          with_victim("heap.json", uid: uid) do |victim|
            contained_program(naming("/inside/escape/heap.json"), kind, uid: uid,
              prepare: "ln -s #{victim} inside/escape") do |program|
              expect_nothing_taken(program, victim)
            end
          end
        end
      end
    end

    it "takes no file from above the root of a process" do
      with_victim("heap.json", uid: mallory) do |victim|
        contained_program(naming("/../#{File.basename(victim)}/heap.json"), :chroot) do |program|
          expect_nothing_taken(program, victim)
        end
      end
    end
  end

  # A process that has loaded memprof/signal, but has no socket and handles the signal itself. It has a
  # directory `real` for its dumps, to which `dumps` leads.
  def handling(code)
    <<~RUBY
      require "socket"
      home = ENV.fetch("TMPDIR")
      Dir.mkdir("\#{home}/real")
      File.symlink("\#{home}/real", "\#{home}/dumps")
      require "memprof/signal"
      socket = "\#{home}/real/memprof-\#{$$}.sock"
      sleep(0.01) until File.socket?(socket)
      File.unlink(socket)
      name = "memprof-\#{$$}-1.json"
      trap("URG") do
        #{code}
        $stdout.syswrite("planted\n")
      end
      puts "ready"
      loop { sleep }
    RUBY
  end

  # Makes `dumps` name another directory, at one go.
  def switch(directory)
    "File.symlink(#{directory.dump}, \"\#{home}/next\"); File.rename(\"\#{home}/next\", \"\#{home}/dumps\")"
  end

  classic = { "MEMPROF_LIBRARY" => "library", "MEMPROF_URL" => nil }
  forms = {
    "memprof dump" => [->(pid) { ["dump", "--pid", pid, "--timeout", 10] }, {}],
    "the old form" => [->(pid) { ["--pid", pid, "--name", "app", "--seconds", 10] }, classic]
  }

  forms.each do |form, (arguments, env)|
    describe "after its signal, by #{form}" do
      # The process gets the signal, so the stage is set; and whatever it planted, the command ends.
      define_method(:expect_spared) do |program, victim|
        aggregate_failures do
          leaves_alone(victim) { bounded(*arguments.call(program.pid), env: env, seconds: 60) }
          expect(stored).not_to include(HostileProcesses::SECRET)
        end
        expect(program.output.wait_readable(10) && program.line).to eq("planted")
      end

      it "takes no file through a directory that has become a link" do
        with_victim do |victim|
          with_home do |home|
            foreign_program(handling(switch(victim)), home: home, ruby_args: memprof,
              env: { "MEMPROF_DIR" => "#{home}/dumps" }) do |program|
              plant("#{victim}/memprof-#{program.pid}-1.json", mallory)
              expect_spared(program, victim)
            end
          end
        end
      end

      it "takes no file through a directory that becomes a link while a dump is written" do
        with_victim do |victim|
          with_home do |home|
            code = "File.write(\"\#{home}/real/\#{name}.IN_PROGRESS\", '{'); sleep(1); #{switch(victim)}"
            foreign_program(handling(code), home: home, ruby_args: memprof,
              env: { "MEMPROF_DIR" => "#{home}/dumps" }) do |program|
              plant("#{victim}/memprof-#{program.pid}-1.json", mallory)
              expect_spared(program, victim)
            end
          end
        end
      end

      %i[chroot pivot].each do |kind|
        it "takes no file of the host through a link in a container (#{kind})" do
          with_victim do |victim|
            contained_program(handling(switch(victim)), kind, ruby_args: memprof,
              env: { "MEMPROF_DIR" => "/inside/dumps" }) do |program|
              plant("#{victim}/memprof-#{program.pid}-1.json", mallory)
              expect_spared(program, victim)
            end
          end
        end
      end

      # Each comes where a dump was begun, so that the command has to look at it.
      {
        "a link to a file of root's" => 'File.symlink(ENV.fetch("SECRET"), path)',
        "a pipe" => "File.mkfifo(path)",
        "a socket" => "UNIXServer.new(path)",
        "a directory" => "Dir.mkdir(path)"
      }.each do |what, planting|
        it "takes #{what} for no dump" do
          with_victim("heap.json") do |victim|
            code = <<~RUBY
              path = "\#{home}/real/\#{name}"
              File.write("\#{path}.IN_PROGRESS", "{")
              sleep(0.5)
              #{planting}
            RUBY
            with_home do |home|
              foreign_program(handling(code), home: home, ruby_args: memprof,
                env: { "MEMPROF_DIR" => "#{home}/real", "SECRET" => "#{victim}/heap.json" }) do |program|
                expect_spared(program, victim)
              end
            end
          end
        end
      end
    end
  end

  describe "by a copy of it" do
    %i[chroot pivot].each do |kind|
      it "puts no library into a directory of the host (#{kind})" do
        with_victim do |victim|
          link = "umount tmp && rmdir tmp && ln -s #{victim} tmp"
          contained_program("puts :ready; sleep", kind, library: "", prepare: link) do |program|
            leaves_alone(victim) { bounded("stack", program.pid) }
            leaves_alone(victim) { bounded("dump", "--pid", program.pid, "--timeout", 20) }
          end
        end
      end

      it "puts no library where a directory above it is a link to the host (#{kind})" do
        with_victim do |victim|
          Dir.mkdir("#{victim}/memprof", 0o777)
          link = "umount tmp && rmdir tmp && ln -s inside/up tmp && ln -s #{victim}/memprof inside/up"
          contained_program("puts :ready; sleep", kind, library: "", prepare: link) do |program|
            leaves_alone(File.join(victim, "memprof")) { bounded("stack", program.pid) }
          end
        end
      end

      # It puts something else where root looks for the library that it has loaded.
      { "a pipe" => "/inside/pipe", "an endless file" => "/dev/zero" }.each do |what, source|
        it "reads no library from #{what} that lies where it was (#{kind})" do
          hiding = <<~RUBY
            require "fileutils"
            File.mkfifo("/inside/pipe")
            puts "ready"
            path = gets.chomp
            FileUtils.mkdir_p(File.dirname(path))
            File.write(path, "") unless File.exist?(path)
            system("mount", "--bind", "#{source}", path) or abort
            puts "hidden"
            sleep
          RUBY
          contained_program(hiding, kind, uid: 0) do |program|
            mapped = File.read("/proc/#{program.pid}/maps")[%r{/\S*libruby\S*}]
            mapped ||= File.readlink("/proc/#{program.pid}/exe")
            expect(program.ask(mapped)).to eq("hidden")
            pid = program.pid
            all_bounded([["stack", pid], ["dump", "--pid", pid, "--timeout", 10], ["core", pid],
              ["attach", pid, "--track", "--timeout", 5, "--for", 0.1]])
          end
        end
      end
    end

    it "prints its names as text only" do
      hostile = <<~'RUBY'
        name = "a\e]0;owned\a\u202e\nmemprof: well"
        $0 = name
        Object.define_method(name) { |&block| block.call }
        Thread.new { Thread.current.name = name.delete("\n"); public_send(name) { sleep } }
        Object.const_set(:Hostile, Class.new { define_singleton_method(:name) { name } })
        KEPT = [Hostile.new]
        Thread.pass until Thread.list.last.stop?
        puts "ready"
        public_send(name) { sleep }
      RUBY
      File.write("code.rb", "KEPT.first.class.name")
      foreign_program(hostile) do |program|
        lines = [["stack"], ["dump", "--pid"], ["memory"], ["memory", "--workers"], ["core"],
          ["attach", "--eval", "code.rb"]]
        commands = lines.map { |words| bounded(*words, program.pid) }
        expect(commands.map { |command| command.status.exitstatus }).to all(eq(0))
        said = commands.map { |command| command.stdout + command.stderr }.join
        expect(said.lines).not_to include("memprof: well\n")
        expect(program.files).to be_empty
      end
    end
  end
end
