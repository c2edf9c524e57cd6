# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"

# `memprof/autorun` by hand, without `memprof run` around it.
RSpec.describe "memprof/autorun" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }

  after { FileUtils.rm_rf(directory) }

  def autorun(code, env: {}, lib: ChildRuby::LIB, **options)
    command = [RbConfig.ruby, "-I#{lib}", "-rmemprof/autorun", "-e", code]
    run_command(*command, env: env, chdir: directory, **options)
  end

  it "writes a file named by the process id, and says so" do
    stdout, stderr, status = autorun("puts Process.pid; $kept = Array.new(5) { Object.new }")
    file = File.join(directory, "memprof.#{stdout.to_i}.txt")

    expect(stderr).to eq("memprof: process #{stdout.to_i}, report: #{file}\n")
    expect(File.read(file)).to include("retained of", "Object")
    expect(File.stat(file).mode.to_s(8)).to end_with("600")
    expect(status).to be_success
  end

  it "takes its settings from the environment" do
    env = { "MEMPROF_OUTPUT" => "%p.json", "MEMPROF_FORMAT" => "json", "MEMPROF_TRACE" => "Rational" }
    stdout, = autorun("puts Process.pid; $kept = Array.new(5) { |i| Rational(i, 7) }", env: env)
    report = JSON.parse(File.read(File.join(directory, "#{stdout.to_i}.json")))

    expect(report.dig("totals", "retained", "objects")).to eq(5)
  end

  it "gives a forked process a file of its own" do
    autorun("Process.wait(fork { $kept = Object.new })")

    expect(Dir.children(directory).size).to eq(2)
  end

  it "still runs the program, with one warning, if a setting is invalid" do
    {
      "MEMPROF_FORMAT" => "html", "MEMPROF_SAMPLE" => "many", "MEMPROF_IGNORE_FILES" => "(",
      "MEMPROF_SIGNAL" => "HELLO"
    }.each do |name, value|
      stdout, stderr, status = autorun("puts 1; exit 3", env: { name => value })

      expect(stdout).to eq("1\n")
      expect(stderr).to match(/\Amemprof: process \d+ is not tracked: .+\n\z/)
      expect(status.exitstatus).to eq(3)
    end
  end

  it "still runs the program, with one warning, if the extension does not fit this Ruby" do
    FileUtils.cp_r(ChildRuby::LIB, File.join(directory, "lib"))
    FileUtils.rm_f(Dir[File.join(directory, "lib/**/*.{so,bundle}")])
    stdout, stderr, status = autorun("puts 1; exit 3", lib: File.join(directory, "lib"))

    expect(stdout).to eq("1\n")
    expect(stderr).to match(/\Amemprof: process \d+ is not tracked: .+\n\z/)
    expect(status.exitstatus).to eq(3)
  end

  it "calls the handler that a signal had before" do
    File.write(File.join(directory, "before.rb"), 'trap("USR2") { $seen = true }')
    code = 'Process.kill("USR2", Process.pid); sleep 0.02 until $seen && !Dir["*-1.txt"].empty?; puts "both"'
    stdout, = run_command(RbConfig.ruby, "-I#{ChildRuby::LIB}", "-r./before", "-rmemprof/autorun", "-e", code,
      env: { "MEMPROF_SIGNAL" => "USR2" }, chdir: directory)

    expect(stdout).to eq("both\n")
  end

  it "does not load json or optparse into the program" do
    stdout, = autorun("puts $LOADED_FEATURES.grep(%r{json|optparse|stringio|io/console})")

    expect(stdout).to be_empty
  end

  it "starts no thread and traps no signal unless asked to" do
    stdout, = autorun('p Thread.list.size, %w[USR1 USR2 HUP TERM].map { |name| trap(name, "DEFAULT") }.uniq')

    expect(stdout).to eq("1\n[\"DEFAULT\"]\n")
  end
end
