# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require_relative "dense_gem"

# The gem of one platform: the extension is compiled for several Rubies, and its source is left out.
class NativeGem
  # `machine` is what objdump calls it. `libc` has the newest version of each family of symbols that a library
  # may need; a family that is missing may not be needed at all. `binutils` is a prefix of the names of tools.
  # RubyGems knows the libc of some names since `rubygems`.
  Platform = Struct.new(:name, :machine, :libc, :binutils, :rubygems, keyword_init: true)

  class Unfit < StandardError; end

  RUBIES = %w[3.1 3.2 3.3 3.4 4.0].freeze
  PATCHES = (0..20) # more than a Ruby ever had
  SOURCE = [".cargo/", "crates/", "ext/", "Cargo."].freeze
  FAMILIES = /\(?\b(GLIBC|GLIBCXX)_(\d[\d.]*)\)?/
  LICENCES = "LICENCES-OF-CRATES.txt"
  SHARED = "libmemprof_core.so"
  private_constant :PATCHES, :SOURCE, :FAMILIES, :SHARED

  # The Rubies with a library. All others get the source gem, also one in between: RubyGems takes the gem that
  # fits. Requirements are joined by "and", so each release of a Ruby in a gap is excluded by itself.
  def self.required_ruby_version(versions)
    first, last = versions.minmax_by { |version| Gem::Version.new(version) }
    between = RUBIES[RUBIES.index(first)..RUBIES.index(last)] - versions
    excluded = between.flat_map { |version| PATCHES.map { |patch| "!= #{version}.#{patch}" } }
    Gem::Requirement.new(">= #{first}", *excluded, "< #{Gem::Version.new("#{last}.0").bump}.dev")
  end

  # @param libraries [Hash{String => String}] paths by the version of Ruby
  # @param licences [String] of what the libraries have in them
  def initialize(platform, libraries, licences: "", root: File.expand_path("..", __dir__))
    @platform = platform
    @licences = licences
    @libraries = libraries.sort_by { |version, _| Gem::Version.new(version) }.to_h
    @root = root
  end

  # RubyGems before 3.3.22 would leave the libc out of the name.
  def file_name = "#{source.name}-#{source.version}-#{@platform.name}.gem"

  # Gives the path of the gem.
  def write(directory, stage:)
    FileUtils.mkdir_p(directory)
    FileUtils.rm_rf(stage)
    copy_files(stage)
    File.write(File.join(stage, LICENCES), @licences)
    @libraries.each { |version, library| copy_library(library, File.join(stage, inner_path(version))) }
    copy_shared(stage)
    file = File.expand_path(file_name, directory)
    Dir.chdir(stage) do
      silent = Gem::SilentUI.new
      Gem::DefaultUserInteraction.use_ui(silent) { Gem::Package.build(specification, false, true, file) }
    end
    DenseGem.compress(file) if DenseGem.available?
    file
  end

  def specification
    source.dup.tap do |spec|
      spec.required_ruby_version = self.class.required_ruby_version(@libraries.keys)
      spec.platform = @platform.name
      spec.extensions = []
      spec.metadata = spec.metadata.except("cargo_crate_name")
      spec.required_rubygems_version = @platform.rubygems if @platform.rubygems
      compiled = @libraries.keys.map { |version| inner_path(version) } + [*inner_path_of_shared]
      spec.files = (files + [LICENCES] + compiled).sort
    end
  end

  private

  def source = @source ||= Gem::Specification.load(File.join(@root, "memprof.gemspec"))

  def files = source.files.reject { |path| path.start_with?(*SOURCE) }

  def inner_path(version) = "lib/memprof/#{version}/memprof.so"

  def inner_path_of_shared = sharing.empty? ? nil : "lib/memprof/#{SHARED}"

  # The libraries that need the shared one. Each has it in its directory, as it was compiled with it.
  def sharing
    @sharing ||= @libraries.values.select { |path| run("objdump", "-p", path).match?(/NEEDED.*#{SHARED}/o) }
  end

  def copy_files(stage)
    files.each do |path|
      FileUtils.mkdir_p(File.dirname(File.join(stage, path)))
      FileUtils.cp(File.join(@root, path), File.join(stage, path))
    end
  end

  # Without the names of functions, which are an eighth of it.
  def copy_library(library, target)
    FileUtils.mkdir_p(File.dirname(target))
    run("objcopy", "--strip-all", library, target)
    check(library, target)
    File.chmod(0o755, target)
  end

  # Each library has been compiled with its own, and will be used with the first one's.
  def copy_shared(stage)
    return if sharing.empty?

    first, *others = sharing.map { |library| File.join(File.dirname(library), SHARED) }
    copy_library(first, File.join(stage, inner_path_of_shared))
    others.each do |other|
      name, = difference(functions_of(first), functions_of(other)).first || next
      raise Unfit, "#{other} differs from #{first} in #{name}: compile both with the same Rust"
    end
  end

  # Names, which contain types and the version of the compiler, and sizes.
  def functions_of(library)
    run("nm", "--dynamic", "--print-size", "--defined-only", library)
      .scan(/^\h+ (\h+) \w (_ZN\S+)/).map(&:reverse)
  end

  def difference(one, other) = (other - one) + (one - other)

  def check(library, target)
    machine = run("objdump", "-f", target)[/^architecture: ([^,]+)/, 1]
    raise Unfit, "#{library} is for #{machine}, not #{@platform.machine}" unless machine == @platform.machine

    run("objdump", "-T", target).scan(FAMILIES).uniq.each do |family, version|
      most = @platform.libc[family]
      next if most && Gem::Version.new(version) <= Gem::Version.new(most)

      raise Unfit, "#{library} needs #{family} #{version}; #{@platform.name} has #{most || "none"}"
    end
  end

  def run(tool, *arguments)
    output = IO.popen(["#{@platform.binutils}#{tool}", *arguments], &:read)
    raise Unfit, "#{tool} failed for #{arguments.last}" unless $?.success?

    output
  end
end
