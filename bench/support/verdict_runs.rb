# frozen_string_literal: true

require "open3"
require "rbconfig"
require "timeout"
require "tmpdir"
require_relative "site_diffs"

# Runs a program of spec/fixtures/verdict, dumps it from outside at each look, and runs `memprof leaks`.
class VerdictRun
  LIBRARY = File.expand_path("../../lib", __dir__)
  MEMPROF = [RbConfig.ruby, "-I#{LIBRARY}", File.expand_path("../../exe/memprof", __dir__)].freeze
  # Whether the program has loaded memprof with tracking, or not at all.
  WAYS = { loaded: ["-I#{LIBRARY}", "-rmemprof/signal"], plain: [] }.freeze
  LOOKS = 3
  # Seconds for a program to reach its next look.
  PATIENCE = 120
  LOOKING = <<~'RUBY'
    def look
      GC.start
      $stdout.puts("ready")
      $stdout.flush
      $stdin.gets
    end
  RUBY
  private_constant :LIBRARY, :MEMPROF, :LOOKS, :PATIENCE, :LOOKING

  # The text of `memprof leaks`, and the first rows of the two peers.
  attr_reader :text, :new_objects, :growing_sites

  def initialize(program, way)
    @program = program
    Dir.mktmpdir("memprof-bench-") do |directory|
      files = dumps(directory, WAYS.fetch(way))
      @text = memprof("leaks", *files)
      records = files.map { |file| objspace(file) }
      @new_objects = SiteDiffs.new_objects(*records)
      @growing_sites = SiteDiffs.growing_sites(*records)
    end
  end

  private

  def dumps(directory, arguments)
    looking = File.join(directory, "looking.rb")
    File.write(looking, LOOKING)
    command = [RbConfig.ruby, *arguments, "-r#{looking}", @program.path]
    environment = { "RUBYOPT" => nil, "MEMPROF_DIR" => directory }
    Open3.popen2(environment, *command, err: File::NULL, chdir: directory) do |stdin, stdout, child|
      Array.new(LOOKS) do |number|
        stdin.puts if number.positive?
        raise "#{@program.name} ended before it was looked at" unless ready?(stdout)

        File.join(directory, "#{number + 1}.memprof").tap do |file|
          memprof("dump", "--pid", child.pid.to_s, "--output", file)
        end
      end
    ensure
      kill(child.pid)
    end
  end

  # Skips other lines, as some programs print.
  def ready?(stdout)
    Timeout.timeout(PATIENCE) { stdout.each_line.any?("ready\n") }
  end

  def kill(pid)
    Process.kill(:KILL, pid)
  rescue Errno::ESRCH
    nil # already failed
  end

  # The same objects, in the format of ObjectSpace.dump_all.
  def objspace(file)
    json = "#{file}.json"
    memprof("convert", "--format", "objspace", file, json)
    SiteDiffs.records(json)
  end

  def memprof(*arguments)
    text, errors, status = Open3.capture3(*MEMPROF, *arguments)
    status.success? ? text : raise("memprof #{arguments.first} failed for #{@program.name}: #{errors}")
  end
end
