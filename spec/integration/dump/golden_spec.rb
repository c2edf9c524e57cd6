# frozen_string_literal: true

require "tmpdir"

# The line of each type, as this version of Ruby has it.
RSpec.describe "A dump's line" do
  heaps = File.expand_path("../../fixtures/heaps", __dir__)
  version = RbConfig::CONFIG["ruby_version"][/\A\d+\.\d+/]

  it "has the keys of its type, in their order" do
    Dir.mktmpdir do |directory|
      result = run_ruby(<<~'RUBY', env: { "DIRECTORY" => directory }, ruby_args: ["-I#{heaps}"])
        require "golden"
        path = File.join(ENV.fetch("DIRECTORY"), "dump.json")
        Thread.pass until Golden::OBJECTS["thread"].stop?
        Dumping.write(path)
        objects = Dumping.objects(path)
        Golden::OBJECTS.each do |name, object|
          line = Golden.short(name, Golden.line(objects.fetch(Dumping.address(object))))
          puts "#{name}: #{JSON.generate(line)}"
        end
      RUBY
      expect(result.stderr).to eq("")
      expect(normalize(result.stdout)).to match_snapshot("dump_lines_#{version}.txt")
    end
  end
end
