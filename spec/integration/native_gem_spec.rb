# frozen_string_literal: true

require "fileutils"
require "memprof/native"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "../../rakelib/native_gem"

# The gem of a platform, from libraries that are there.
RSpec.describe NativeGem do
  before { skip "platform gems are for Linux" unless RUBY_PLATFORM.include?("linux") }

  this = RUBY_VERSION[/\A\d+\.\d+/]
  other = this == "3.3" ? "3.4" : "3.3"
  machine = RUBY_PLATFORM.start_with?("aarch64") ? "aarch64" : "i386:x86-64"
  let(:row) do
    name = "#{RUBY_PLATFORM[/\A\w+/]}-linux-gnu"
    { name: name, machine: machine, libc: { "GLIBC" => "2.34" }, binutils: "" }
  end
  let(:library) { $LOADED_FEATURES.find { |path| path.end_with?("/memprof.so") } }

  # Without what could build anything.
  def run_installed(home, *command)
    run_command(RbConfig.ruby, *command, chdir: home,
      env: { "GEM_HOME" => home, "GEM_PATH" => home, "RUBYLIB" => nil, "PATH" => home })
  end

  def gem_command(home, *arguments)
    run_installed(home, "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV)", "--", *arguments)
  end

  around { |example| Dir.mktmpdir("memprof-native-gem") { |home| Dir.chdir(home) { example.run } } }

  it "installs without a compiler, and has the library of each of its Rubies" do
    home = Dir.pwd
    platform = described_class::Platform.new(**row)
    file = described_class.new(platform, { this => library, other => library }, licences: "MIT")
      .write("pkg", stage: "stage")
    expect(File.basename(file)).to match(/\Amemprof-1\.\S+-linux-gnu\.gem\z/)

    stdout, stderr, status = gem_command(home, "install", "--local", file)
    expect([status.success?, stderr]).to eq([true, ""]), stdout
    sources = ["{extensions,gems/*/ext}/**/*", "gems/*/{.cargo,crates,Cargo.toml}"]
    expect(Dir[*sources, "doc/*/ri/*/**/*.ri"]).to be_empty

    expect(Dir["gems/*/LICENCES-OF-CRATES.txt"].map { |path| File.read(path) }).to eq(["MIT"])
    stdout, stderr, status = run_installed(home, "bin/memprof", "--version")
    expect([status.exitstatus, stderr, stdout]).to match([0, "", /\bmemprof 1\.\d+\.\d+/i])

    stdout, stderr, status = run_installed(home, "-e", <<~RUBY)
      require "memprof"
      kept = nil
      Memprof.track { kept = Array.new(12) { "abc" } }
      require "memprof/cli"
      puts $LOADED_FEATURES.grep(/memprof\\.so/)
      copy = Memprof::CLI::ProcessCopy.new(Struct.new(:pid).new(4711))
      %w[#{this}.9 #{other}.9 9.9.9].each do |version|
        copy.instance_variable_set(:@ruby_version, version)
        puts copy.library
      rescue Memprof::CLI::UsageError => e
        puts e.message
      end
    RUBY
    expect([status.exitstatus, stderr]).to eq([0, ""])
    expect(stdout).to match(/^     12 -e:3:String$/)
    *libraries, refusal = stdout.lines(chomp: true).grep(/memprof/)
    inside = Dir["#{File.realpath(home)}/gems/memprof-*/lib/memprof"].first
    expect(libraries).to eq([this, this, other].map { |version| "#{inside}/#{version}/memprof.so" })
    expect(refusal).to eq("process 4711 runs Ruby 9.9.9, and this memprof has libraries for " \
                          "#{[this, other].sort.join(", ")}: run the memprof of that Ruby")
  end

  it "is compressed better than RubyGems does, with the same contents" do
    skip "libdeflate-gzip is not installed" unless DenseGem.available?

    platform = described_class::Platform.new(**row)
    allow(DenseGem).to receive(:available?).and_return(false, true)
    gem = described_class.new(platform, { this => library })
    plain, dense = %w[plain dense].map { |directory| gem.write(directory, stage: "stage") }
    expect(File.size(dense)).to be < 0.985 * File.size(plain)
    files = [plain, dense].map { |file| Gem::Package.new(file).tap(&:verify) }
    expect(files.map { |file| file.spec.to_yaml }.uniq.size).to eq(1)
    files.each_with_index { |file, at| file.extract_files("out-#{at}") }
    expect(system("diff", "-r", "out-0", "out-1")).to be(true)
  end

  it "is for the Rubies that it has a library for, so that others take the source gem" do
    requirement = described_class.required_ruby_version(%w[4.0 3.1 3.3])
    accepted = %w[3.0.7 3.1.0 3.1.7 3.2.0 3.2.3 3.2.11 3.3.0 3.3.12 3.4.0 3.4.9 4.0.0 4.0.5 4.1.0.dev 4.1.0]
      .select { |version| requirement.satisfied_by?(Gem::Version.new(version)) }
    expect(accepted).to eq(%w[3.1.0 3.1.7 3.3.0 3.3.12 4.0.0 4.0.5])
    expect(described_class.required_ruby_version(%w[3.4])).to eq(Gem::Requirement.new(">= 3.4", "< 3.5.dev"))
  end

  it "refuses a library that the platform could not load" do
    {
      { libc: { "GLIBC" => "2.2" } } => /memprof\.so needs GLIBC 2\.[\d.]+; \S+ has 2\.2\z/,
      { libc: {} } => /memprof\.so needs GLIBC 2\.[\d.]+; \S+ has none\z/,
      { machine: "riscv" } => /memprof\.so is for #{machine}, not riscv\z/
    }.each do |fault, message|
      platform = described_class::Platform.new(**row, **fault)
      expect { described_class.new(platform, { this => library }).write("pkg", stage: "stage") }
        .to raise_error(described_class::Unfit, message)
    end
    expect(Dir["pkg/*"]).to be_empty
  end

  describe "with a library that others share" do
    def compile(name, source, *options)
      FileUtils.mkdir_p(File.dirname(name))
      compiler = RbConfig::CONFIG["CC"].split.first
      out, status = Open3.capture2e(compiler, "-shared", "-fPIC", "-o", name, "-x", "c", "-", *options,
        stdin_data: source)
      expect(status.success?).to be(true), out
    end

    def write(*versions)
      libraries = versions.to_h { |version| [version, "built/#{version}/memprof.so"] }
      described_class.new(described_class::Platform.new(**row), libraries).write("pkg", stage: "stage")
    end

    before do
      allow(DenseGem).to receive(:available?).and_return(false)
      { "3.1" => "_ZN4core3one17h1E", "3.3" => "_ZN4core3one17h1E", "3.4" => "_ZN4core3one17h2E" }
        .each do |version, name|
          compile("built/#{version}/libmemprof_core.so", "int #{name}(void) { return 1; }")
          compile("built/#{version}/memprof.so", "int #{name}(void); int two(void) { return #{name}(); }",
            "-Lbuilt/#{version}", "-Wl,--no-as-needed", "-l:libmemprof_core.so")
        end
    end

    it "has that once" do
      files = Gem::Package.new(write("3.1", "3.3")).contents.grep(/\.so\z/)
      expect(files).to contain_exactly("lib/memprof/libmemprof_core.so", "lib/memprof/3.1/memprof.so",
        "lib/memprof/3.3/memprof.so")
    end

    it "refuses a second one with other functions" do
      message = "built/3.4/libmemprof_core.so differs from built/3.1/libmemprof_core.so in " \
                "_ZN4core3one17h2E: compile both with the same Rust"
      expect { write("3.1", "3.4") }.to raise_error(described_class::Unfit, message)
    end
  end
end
