# frozen_string_literal: true

# Programs under Bundler whose Gemfile lacks memprof, which is installed as a gem.
RSpec.describe "RUBYOPT=-rmemprof/signal under Bundler" do
  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  before do
    %w[gems/gems gems/specifications app].each { |path| FileUtils.mkdir_p(path) }
    File.symlink(ChildRuby::ROOT, "gems/gems/memprof-99.0.0")
    File.write("gems/specifications/memprof-99.0.0.gemspec", <<~RUBY)
      Gem::Specification.new do |spec|
        spec.name, spec.version, spec.summary, spec.authors = "memprof", "99.0.0", "memprof", ["memprof"]
        spec.require_paths = ["lib"]
      end
    RUBY
    File.write("app/Gemfile", "")
    File.write("app/Gemfile.lock", "GEM\n  specs:\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n")
    # Debian's Ruby has Bundler without its command.
    File.write("bundle", <<~RUBY, perm: 0o755)
      #!#{RbConfig.ruby}
      require "bundler"
      require "bundler/cli"
      Bundler::CLI.start(ARGV)
    RUBY
    File.write("app/script", <<~RUBY, perm: 0o755)
      #!#{RbConfig.ruby}
      puts "Bundler: \#{defined?(Bundler).inspect}, tracked: \#{defined?(Memprof) ? Memprof.running? : "no memprof"}"
      system(RbConfig.ruby, "-e", 'puts "child: \#{defined?(Memprof::OnSignal).inspect}"')
    RUBY
  end

  def bundle_exec(*command, rubyopt: "-rmemprof/signal")
    paths = [File.expand_path("gems"), *Gem.path].join(File::PATH_SEPARATOR)
    run_command(File.expand_path("bundle"), "exec", *command, chdir: "app",
      env: { "RUBYOPT" => rubyopt, "GEM_PATH" => paths, "MEMPROF_DIR" => Dir.pwd, "RUBYLIB" => nil,
             "BUNDLE_GEMFILE" => nil, "BUNDLE_FROZEN" => "true" })
  end

  let(:expected) { "Bundler: \"constant\", tracked: true\nchild: \"constant\"\n" }

  # Bundler of Debian's Ruby 3.4 has warnings of its own.
  def expect_start(result)
    errors = result.stderr.lines.grep_v(/: warning: (?:already initialized|previous definition)/)
    expect([result.stdout, errors]).to eq([expected, []])
  end

  it "starts a command, with memprof" do
    expect_start(bundle_exec(RbConfig.ruby, "script"))
  end

  it "starts a script, which Bundler would load into its own process" do
    expect_start(bundle_exec("./script"))
  end

  it "starts it by the path of the file, too" do
    result = bundle_exec(RbConfig.ruby, "script", rubyopt: "-r#{ChildRuby::LIB}/memprof/signal.rb")
    expect_start(result)
  end

  it "leaves the environment of those alone that load it by themselves" do
    result = run_ruby('require "memprof/signal"; p ENV.values_at("RUBYLIB", "BUNDLE_DISABLE_EXEC_LOAD")',
      env: { "RUBYLIB" => nil, "MEMPROF_DIR" => Dir.pwd })
    expect(result.stdout).to eq("[nil, nil]\n")
  end
end
