# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "MEMPROF_SPEC" do
  def rspec(value, *options)
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "shop_spec.rb"), <<~RUBY)
        require "memprof/rspec"
        RSpec.describe "shop" do
          it("allocates") { 2000.times { "a" * 200 } }
          it("retains") { ($kept ||= []) << Array.new(500) { "b" * 300 } }
          it("does nothing") {}
        end
      RUBY
      run_ruby("load Gem.bin_path('rspec-core', 'rspec')", args: ["--", *options, "shop_spec.rb"],
        env: { "MEMPROF_SPEC" => value }, chdir: directory)
    end
  end

  it "lists the examples that allocate and retain most" do
    text = JSON.parse(rspec("2", "--format", "json").stdout)["messages"].join
    allocate, retain = text.split("\n\n").map { |table| table.lines.grep(/shop_spec/) }

    expect(text).to include("Examples that allocate most (2 of 3):")
    expect(allocate.first).to match(/\A *\d+\.\d KiB  +[24],0\d\d  shop allocates +\.\/shop_spec\.rb:3$/)
    expect(allocate.size).to eq(2)
    expect(retain.first).to match(/\A[1-4]\d\d\.\d KiB  +5[01]\d  shop retains +\.\/shop_spec\.rb:4$/)
  end

  it "lists nothing unless asked, and refuses what is not a number" do
    expect(rspec("0").stdout).to match(/\A[^E]*3 examples, 0 failures\s*\z/)
    expect(rspec("many").to_a.first(2).join).to include('invalid MEMPROF_SPEC "many"')
  end
end
