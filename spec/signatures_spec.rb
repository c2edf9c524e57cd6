# frozen_string_literal: true

require "minitest"
require "rbs"
require "memprof"
require "memprof/agent"
require "memprof/compat/memory_profiler"
require "memprof/minitest"
require "memprof/rspec"
require "memprof/sidekiq"
require "heap_dump"

# sig/ has the public API: no more, no less. That values are of the types it says is for `rake types`.
RSpec.describe "The signatures" do
  root = File.expand_path("..", __dir__)

  # Not kept beyond an example: the collector would look at all of it in each later one.
  let(:builder) do
    loader = RBS::EnvironmentLoader.new
    loader.add(path: Pathname(root) + "sig")
    RBS::DefinitionBuilder.new(env: RBS::Environment.from_loader(loader).resolve_type_names)
  end

  let(:names) do
    names = builder.env.class_decls.keys.select { |name| name.to_s.match?(/\A::(?:Memprof|HeapDump)\b/) }
    names.reject { |name| name.to_s == "::Memprof::Dump" } # of which only Result is public
  end

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

  it "have the public methods of each class and module" do
    expect(names.size).to be > 10
    names.each do |name|
      mod = Object.const_get(name.to_s)
      methods = mod.public_instance_methods(false).reject { |method| hidden?(mod.instance_method(method)) }
      signed = signed(builder.build_instance(name), name)
      expect(name => signed).to match(name => match_array(methods))
    end
  end

  it "have the public methods of each class and module itself" do
    names.each do |name|
      mod = Object.const_get(name.to_s)
      methods = mod.singleton_methods(false).reject { |method| hidden?(mod.method(method)) }
      signed = signed(builder.build_singleton(name), name) - [:new]
      expect(name => signed).to match(name => match_array(methods))
    end
  end

  it "are of the files that have documentation" do
    documented = File.readlines(File.join(root, ".yardopts"), chomp: true).grep(/\Alib/)
    documented -= %w[lib/memprof/errors.rb lib/memprof/version.rb] # in sig/memprof/api.rbs
    signed = Dir["**/*.rbs", base: File.join(root, "sig")].map { |file| "lib/#{file.delete_suffix("rbs")}rb" }
    expect(signed).to match_array(documented)
  end
end
