# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# The gem as a user gets it. Slow: only `rake package:test` runs it.
RSpec.describe "The packaged gem", :package do
  home = nil

  before(:context) do
    gems = Dir[File.join(ChildRuby::ROOT, "pkg", "memprof-*.gem")]
    raise "one gem is wanted in pkg/, found #{gems.size}: run rake package" unless gems.one?

    home = Dir.mktmpdir("memprof-gem-home")
    install = run_command(RbConfig.ruby, "-S", "gem", "install", "--local", "--no-document", *gems,
      env: { "GEM_HOME" => home, "RUBYLIB" => nil, "CARGO_TARGET_DIR" => nil }, timeout: 1200)
    raise "gem install failed\n#{install.stdout}\n#{install.stderr}" unless install.success?
  end

  after(:context) { FileUtils.rm_rf(home) if home }

  # From a directory of its own, so that nothing is loaded from the checkout.
  def run_installed(*command)
    run_command(*command, env: { "GEM_HOME" => home, "RUBYLIB" => nil }, chdir: home)
  end

  let(:home) { home }

  it "tracks, from the installed files" do
    stdout, stderr, status = run_installed(RbConfig.ruby, "-e", <<~RUBY)
      require "memprof"
      kept = nil
      Memprof.track { kept = Array.new(12) { "abc" } }
      report = Memprof.report { kept = Array.new(12) { "abc" } }
      puts "retained \#{report.total_retained}"
      puts $LOADED_FEATURES.grep(/memprof/)
    RUBY
    expect(stderr).to eq("")
    expect(status).to be_success
    expect(stdout).to match(/^     12 -e:3:String$/)
    expect(stdout[/retained (\d+)/, 1].to_i).to be >= 12
    expect(stdout.lines.grep(/memprof.*\.(rb|so|bundle)$/)).to all(start_with(File.realpath(home)))
  end

  it "has the command" do
    stdout, stderr, status = run_installed("#{home}/bin/memprof", "--version")
    expect([stdout, stderr]).to match([/\bmemprof 1\.\d+\.\d+/i, ""])
    expect(status).to be_success
  end

  it "carries its signatures, its licence and its documentation" do
    installed = Dir[File.join(home, "gems/memprof-*")].first
    expect(Dir.children(installed)).to include("sig", "LICENSE.txt", "README.md", "CHANGELOG.md")
  end

  it "leaves no build directory behind" do
    expect(Dir[File.join(home, "{gems,extensions}/**/*.rlib")]).to be_empty
  end

  # Its settings for cargo are in a directory that begins with a dot.
  it "has no way of compressing that memprof does not use" do
    library = Dir[File.join(home, "**/lib/memprof/*/memprof.so.debug")].first or skip "no names of functions"
    expect(File.binread(library)).to match(/ZSTD_compressBlock_fast/)
    expect(File.binread(library)).not_to match(/ZSTD_compressBlock_(?:btopt|lazy)/)
  end

  it "has one library, which is small, and the names of its functions beside it" do
    libraries = Dir[File.join(home, "**/*.{so,bundle,dylib}")]
    expect(libraries.size).to eq(1), libraries.join("\n")
    expect(File.size(libraries.first)).to be < 8.25 * 1024 * 1024
    files = Dir.glob(File.join(home, "{gems,extensions}/**/*"), File::FNM_DOTMATCH)
    expect(files.sum { |file| File.file?(file) ? File.size(file) : 0 }).to be < 16 * 1024 * 1024
    next unless RUBY_PLATFORM.include?("linux")

    expect(File.binread(libraries.first)).to include(".gnu_debuglink")
    expect(File.binread("#{libraries.first}.debug")).to include(".symtab")
  end

  it "needs no other gem, also under Bundler" do
    specification = Gem::Specification.load(Dir[File.join(home, "specifications/memprof-*.gemspec")].first)
    expect(specification.runtime_dependencies).to eq([])
    gemfile = File.join(home, "Gemfile")
    File.write(gemfile, "gem 'memprof', '>= 1.0.0.pre'\n")
    program = "require 'memprof'; puts Memprof::VERSION, Memprof.report { 'a' * 2 }.total_allocated.positive?"
    stdout, stderr, status = run_command(RbConfig.ruby, "-rbundler/setup", "-e", program, chdir: home,
      env: { "GEM_HOME" => home, "GEM_PATH" => home, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => gemfile })
    expect([status.success?, stdout]).to eq([true, "#{specification.version}\ntrue\n"]), stderr
  end
end
