# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# `memprof run` in a temporary directory.
RSpec.shared_context "with memprof run" do
  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  # The output directory of runs without --output.
  let(:temporary) { File.join(directory, "tmp").tap { |path| Dir.mkdir(path) } }

  after { FileUtils.rm_rf(directory) }

  def run(*arguments, env: {}, **options)
    run_memprof("run", *arguments, env: { "TMPDIR" => temporary }.merge(env), chdir: directory, **options)
  end

  def file(name, text = nil)
    path = File.join(directory, name)
    File.write(path, text) if text
    File.read(path)
  end

  # The files named at the end of the command's output.
  def named(stderr)
    place = stderr[/reports in (\S+),/, 1]
    names = stderr.scan(/\S+\.txt$/).map { |name| File.join(place, name) }
    names.map { |path| path.delete_prefix("#{File.realpath(directory)}/") }
  end

  # The current report files, without the example's own.
  def reports
    Dir.children(directory).grep(/report/).sort
  end

  # A shell command line with `memprof run` as $MEMPROF.
  def shell(command, **options)
    memprof = "#{RbConfig.ruby} -I#{ChildRuby::LIB} #{File.join(ChildRuby::ROOT, "exe/memprof")} run"
    run_command("sh", "-c", command, env: { "TMPDIR" => temporary, "MEMPROF" => memprof }, chdir: directory,
      **options)
  end
end
