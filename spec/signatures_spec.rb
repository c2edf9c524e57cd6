# frozen_string_literal: true

require "minitest"
require "rbs"
require "memprof"
require "memprof/memory_profiler/interface"
require "memprof/minitest"
require "memprof/rspec"
require "heap_dump"

# sig/ has the public API: no more, no less. That values are of the types it says is for `rake types`.
RSpec.describe "The signatures" do
  root = File.expand_path("..", __dir__)
  loader = RBS::EnvironmentLoader.new
  loader.add(path: Pathname(root) + "sig")
  environment = RBS::Environment.from_loader(loader).resolve_type_names
  builder = RBS::DefinitionBuilder.new(env: environment)
  names = environment.class_decls.keys.select { |name| name.to_s.match?(/\A::(?:Memprof|HeapDump)\b/) }
  names.reject! { |name| name.to_s == "::Memprof::Dump" } # of which only Result is public

  # Methods whose comment has the tag `@api private` are public for other classes of memprof alone.
  def hidden?(method)
    file, line = method.source_location
    return true if file.nil?

    comment = File.readlines(file).first(line - 1).reverse.take_while { |text| text.match?(/\A\s*#/) }
    comment.any? { |text| text.include?("@api private") }
  end

  def signed(definition, name)
    definition.methods.select { |_, method| method.public? && method.defined_in == name }.keys
  end

  names.each do |name|
    it "has the public methods of #{name.to_s.delete_prefix("::")}" do
      mod = Object.const_get(name.to_s)
      methods = mod.public_instance_methods(false).reject { |method| hidden?(mod.instance_method(method)) }
      expect(signed(builder.build_instance(name), name)).to match_array(methods)
    end

    it "has the public methods of the module #{name.to_s.delete_prefix("::")} itself" do
      mod = Object.const_get(name.to_s)
      methods = mod.singleton_methods(false).reject { |method| hidden?(mod.method(method)) }
      expect(signed(builder.build_singleton(name), name) - [:new]).to match_array(methods)
    end
  end

  it "are of the files that have documentation" do
    documented = File.readlines(File.join(root, ".yardopts"), chomp: true).grep(/\Alib/)
    documented -= %w[lib/memprof/errors.rb lib/memprof/version.rb] # in sig/memprof.rbs
    signed = Dir["**/*.rbs", base: File.join(root, "sig")].map { |file| "lib/#{file.delete_suffix("rbs")}rb" }
    expect(signed).to match_array(documented)
  end
end
