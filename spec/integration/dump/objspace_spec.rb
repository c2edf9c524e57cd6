# frozen_string_literal: true

require "tmpdir"

# The objspace format against Ruby's own ObjectSpace.dump_all, over a heap with one of everything.
RSpec.describe "Dumps in objspace's format" do
  heaps = File.expand_path("../../fixtures/heaps", __dir__)

  def differences(directory, setup, ruby_args: [])
    run_ruby(<<~RUBY, timeout: 300, env: { "DIRECTORY" => directory }, ruby_args: ruby_args)
      require "dumping"
      require "hostile"
      directory = ENV.fetch("DIRECTORY")
      #{setup}
      path = ->(name) { File.join(directory, name) }
      Dumping.write(path["warm"], format: "objspace")
      GC.start
      GC.disable
      files = %w[before theirs after].to_h { |name| [name, File.open(path[name], "wb")] }
      options = { format: "objspace", values: "full", compression: "none", header: Dumping::HEADER }
      Dumping::NATIVE.dump_heap(files["before"].fileno, options)
      ObjectSpace.dump_all(output: files["theirs"])
      Dumping::NATIVE.dump_heap(files["after"].fileno, options)
      files.each_value(&:close)
      by_address = files.transform_values do |file|
        File.readlines(file.path, chomp: true).to_h { |line| [line[/"(?:address|root)":"[^"]+"/], line] }
      end
      # What changed from the first dump to the last (stacks, inline caches, these files) cannot be compared.
      same = by_address["before"].select { |address, line| by_address["after"][address] == line }
      theirs = by_address["theirs"]
      compared = different = 0
      same.each do |address, ours|
        compared += 1
        # The stack that the dump is called from is not the same.
        next if ours == theirs[address] || ours.match?(/"struct":"(?:VM.thread|fiber)"/)

        their = theirs[address]
        # Ruby writes what is no JSON for some texts; there the parsed lines cannot be compared.
        next if their && !(JSON.parse(their) rescue nil)
        next if their && JSON.parse(their) == JSON.parse(ours)

        different += 1
        puts "theirs \#{their}", "ours   \#{ours}" if different < 5
      end
      puts "compared \#{compared > theirs.size * 0.98} of all, different \#{different}"
      puts "invalid \#{File.foreach(path["after"]).count { |line| !(JSON.parse(line) rescue nil) }}"
      puts "missing \#{(by_address["before"].keys & by_address["after"].keys).count { |key| !theirs.key?(key) }}"
    RUBY
  end

  it "have the same lines for every object, root and shape" do
    Dir.mktmpdir do |directory|
      result = differences(directory, "", ruby_args: ["-I#{heaps}"])
      expect(result.stdout.lines(chomp: true))
        .to eq(["compared true of all, different 0", "invalid 0", "missing 0"]), result.stdout + result.stderr
    end
  end

  it "have the same lines when the heap was compacted", if: GC.respond_to?(:compact) do
    Dir.mktmpdir do |directory|
      result = differences(directory, "GC.compact", ruby_args: ["-I#{heaps}"])
      expect(result.stdout.lines(chomp: true))
        .to eq(["compared true of all, different 0", "invalid 0", "missing 0"]), result.stdout + result.stderr
    end
  end

  it "are valid JSON where Ruby's are not" do
    Dir.mktmpdir do |directory|
      result = run_ruby(<<~'RUBY', env: { "DIRECTORY" => directory }, ruby_args: ["-I#{heaps}"])
        require "dumping"
        Memprof.start
        eval('$odd = Object.new', binding, "we\"ird\n\xff.rb", 7)
        path = File.join(ENV.fetch("DIRECTORY"), "dump.json")
        Dumping.write(path, format: "objspace")
        line = Dumping.parse(path).find { |record| record["address"] == Dumping.address($odd) }
        puts line.values_at("file", "line").inspect
      RUBY
      expect(result.stdout).to eq("[\"we\\\"ird\\n\u{fffd}.rb\", 7]\n"), result.stderr
    end
  end
end
