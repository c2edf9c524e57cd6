# frozen_string_literal: true

require "fileutils"
require "open3"
require "tmpdir"

# Exports are for programs of others, so those programs judge them: speedscope, the Firefox Profiler's command
# line and pprof readers, fetched from npm for the time of the check. check.mjs says what is compared.
RSpec.describe "exports in their viewers" do
  include CargoExamples

  before(:all) do
    @directory = Dir.mktmpdir("memprof-viewers")
    @missing = install_viewers
  end

  after(:all) { FileUtils.remove_entry(@directory) }

  before { skip(@missing) if @missing }

  let(:exports) { File.join(@directory, "exports").tap { |path| FileUtils.mkdir_p(path) } }

  after { FileUtils.rm_rf(exports) }

  # The reason why nothing can be checked here, or nil.
  def install_viewers
    version, status = Open3.capture2e("node", "--version")
    return "needs node 20.19 or newer" unless status.success? && version[/\d+/].to_i >= 20

    FileUtils.cp(["package.json", "check.mjs"].map { |file| File.join(__dir__, file) }, @directory)
    output, status = Open3.capture2e("npm", "install", "--no-package-lock", "--no-audit", "--no-fund",
      "--ignore-scripts", "--loglevel=error", chdir: @directory)
    "needs the packages of spec/exports/package.json from npm: #{output.lines.first}" unless status.success?
  rescue Errno::ENOENT => error
    "needs node and npm: #{error.message}"
  end

  def expect_to_be_read
    result = run_command("node", File.join(@directory, "check.mjs"), exports, timeout: 300)
    expect(result.status).to be_success, "#{result.stdout}#{result.stderr[0, 3000]}"
  end

  it "are read as they were meant" do
    cache = {}
    report = Memprof.report(stack: 32) do
      40.times { |number| cache[number % 10] ||= [number].map { |key| "value of #{key}" } }
    end
    report.write(File.join(exports, "report.json"), format: :json)
    { collapsed: "collapsed", speedscope: "speedscope.json", firefox: "firefox.json", pprof: "pprof.pb.gz" }
      .each { |format, ending| report.write(File.join(exports, "profile.#{ending}"), format: format) }

    expect_to_be_read
  end

  it "are read if names contain what the formats use as marks" do
    skip("needs cargo") unless CargoExamples.cargo?
    run_example("memprof-profile", "export", exports)

    expect_to_be_read
  end
end
