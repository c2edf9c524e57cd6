# frozen_string_literal: true

# Spring's client asks a server to do the work, and starts one that goes on for hours.
RSpec.describe "memprof and Spring" do
  include_context "with memprof run"

  before do
    file("spring", <<~'RUBY')
      system("ruby", "-e", "$stderr.puts \"server \#{ENV.key?('RUBYOPT') && ENV['RUBYOPT'].include?('autorun')}\"")
    RUBY
    # As `spring binstub` writes it.
    file("rails", <<~'RUBY')
      load "spring" if ENV["DISABLE_SPRING"].to_s.empty?
      warn "in this process"
    RUBY
  end

  def memprof(*arguments)
    run_memprof(*arguments, env: { "TMPDIR" => temporary, "DISABLE_SPRING" => nil }, chdir: directory)
  end

  it "has the work done in the process that is measured" do
    options = { "check" => ["--baseline", "base.json", "--update"] }
    %w[run check malloc].each do |verb|
      result = memprof(verb, *options[verb], "--", "ruby", "rails")
      expect(result.stderr).to include("in this process\n")
      expect(result.stderr).not_to include("server")
      expect(result).to be_success
    end
    result = memprof("track", "rails")
    expect(result.stderr).to eq("in this process\n")
  end

  it "says that nothing was measured, writes no baseline, and leaves the server alone" do
    result = memprof("check", "--baseline", "base.json", "--update", "--", "ruby", "spring", "rspec")
    expect(result.stderr).to include("Spring runs the command in its server: run it without `spring`")
      .and include("server false\n").and include("no report")
    expect(result.status.exitstatus).to eq(2)
    expect(File.exist?(File.join(directory, "base.json"))).to be(false)

    %w[run malloc].each do |verb|
      result = memprof(verb, "--", "ruby", "spring", "rspec")
      expect(result.stderr).to include("Spring runs the command in its server").and include("server false\n")
      expect(result.stdout).to eq("")
    end
    result = memprof("track", "spring")
    expect(result.stderr).to include("Spring runs the command in its server")
    expect(result.status.exitstatus).to eq(2)
  end

  it "says that a command which only waits had others do its work" do
    result = memprof("run", "--", "ruby", "--disable-gems", "-e", "sleep 10")
    expect(result.stderr).to match(/^memprof: the command worked for 0\.\d s of 1\d\.\d s: what processes/)
    expect(result).to be_success
  end
end
