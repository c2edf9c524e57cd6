# frozen_string_literal: true

require "tmpdir"

# What a dump says of the whole heap, against what Ruby says of it.
RSpec.describe "References in dumps" do
  heaps = File.expand_path("../../fixtures/heaps", __dir__)

  def dump_hostile(code, **options)
    Dir.mktmpdir do |directory|
      result = run_ruby(<<~RUBY, timeout: 300, env: { "DIRECTORY" => directory }, **options)
        require "dumping"
        require "hostile"
        directory = ENV.fetch("DIRECTORY")
        path = ->(name) { File.join(directory, name) }
        #{code}
      RUBY
      expect(result.stderr).to eq("")
      result.stdout.lines(chomp: true)
    end
  end

  it "are those that ObjectSpace.dump_all names, for every object, whether they have a label or not" do
    lines = dump_hostile(<<~RUBY, ruby_args: ["-I#{heaps}"])
      Dumping.write(path["warm"])
      GC.start
      GC.disable
      names = %w[before after theirs ours]
      files = names.to_h { |name| [name, File.open(path[name], "wb")] }
      objspace = { format: "objspace", values: "full", compression: "none", header: Dumping::HEADER }
      Dumping::NATIVE.dump_heap(files["before"].fileno, objspace)
      Dumping::NATIVE.dump_heap(files["ours"].fileno, objspace.merge(format: "memprof"))
      Dumping::NATIVE.dump_heap(files["after"].fileno, objspace)
      files.each_value(&:close)
      key = ->(record) { record["address"] }
      before, after = %w[before after].map { |name| Dumping.parse(path[name]).to_h { |r| [key[r], r] } }
      ours = Dumping.objects(path["ours"])
      compared = different = unlike = 0
      before.each do |address, theirs|
        next if address.nil? || theirs["type"] == "SHAPE" || after[address] != theirs

        our = ours.fetch(address)
        compared += 1
        references = our.fetch("references", [])
        unlike += 1 if our["labels"] && our["labels"].size != references.size
        # Ruby 3.1 takes the second word of an internal object for its class, and so leaves it out.
        word = theirs["class"] if theirs["type"] == "IMEMO"
        next if (references - [word]).sort == (theirs.fetch("references", []) - [word]).sort
        next if %w[VM/thread fiber].include?(theirs["struct"])

        different += 1
        puts theirs, our if different < 4
      end
      puts "compared \#{compared > before.size * 0.95}, different \#{different}, labels of another length \#{unlike}"
    RUBY
    expect(lines).to eq(["compared true, different 0, labels of another length 0"])
  end

  it "come from as many objects as ObjectSpace.count_objects counts, and the closing line counts them" do
    lines = dump_hostile(<<~RUBY, ruby_args: ["-I#{heaps}"])
      Dumping.write(path["warm"])
      GC.start
      GC.disable
      file = File.open(path["dump"], "wb")
      options = { format: "memprof", values: "full", compression: "none", header: Dumping::HEADER }
      counts = ObjectSpace.count_objects({})
      before = counts[:TOTAL] - counts[:FREE]
      written = Dumping::NATIVE.dump_heap(file.fileno, options)
      ObjectSpace.count_objects(counts)
      after = counts[:TOTAL] - counts[:FREE]
      file.close
      records = Dumping.parse(path["dump"])
      objects = records.select { |record| record["_id"].start_with?("0x") && record["type"] != "frame" }
      footer = records.last
      puts objects.size.between?(before, after)
      puts [objects.size, objects.sum { |o| o.fetch("references", []).size }, objects.sum { |o| o["memsize"] }] ==
        footer.values_at("objects", "references", "memsize")
      puts written.values_at("objects", "references", "bytes") ==
        [*footer.values_at("objects", "references"), File.size(path["dump"])]
      puts records.first["_id"], footer["_id"], objects.map { |o| o["_id"] }.uniq.size == objects.size
    RUBY
    expect(lines).to eq(%w[true true true header footer true])
  end

  it "have the line of a binding, and decimal digits of large integers" do
    lines = dump_hostile(<<~'RUBY', ruby_args: ["-I#{heaps}"])
      def make
        nil
        binding
      end
      line = __LINE__ - 2
      made = make
      numbers = [2**64, 2**127, 2**128, -(2**128), 10**38, 10**39, 10**57, 10**300, -(7**3000), 2**65_535, (2**192) - 1]
      hex = 2**66_000
      Dumping.write(path["dump"])
      objects = Dumping.objects(path["dump"])
      puts objects[Dumping.address(made)]["source_line"] == line
      puts numbers.map { |number| objects[Dumping.address(number)]["data"] == number.to_s }.uniq.inspect
      puts objects[Dumping.address(hex)]["data"] == "0x" + hex.to_s(16)
    RUBY
    expect(lines).to eq(%w[true [true] true])
  end

  it "show which hashes compare by identity, and where a shared array begins" do
    lines = dump_hostile(<<~'RUBY', ruby_args: ["-I#{heaps}"])
      key, long = Object.new, Array.new(200) { |index| index.to_s }
      hashes = [{}.compare_by_identity, { key => 1, 2 => long }.compare_by_identity, { key => 1 }, {},
        Array.new(50) { |index| [index, index] }.to_h]
      named = { key => 3 }.compare_by_identity
      named.instance_variable_set(:@name, key)
      tail, middle = long.drop(40), long[7, 100]
      Dumping.write(path["dump"])
      objects = Dumping.objects(path["dump"])
      line = ->(object) { objects[Dumping.address(object)] }
      p [*hashes, named].map { |hash| line[hash]["compare_by_identity"] }
      p line[hashes[1]]["data"] == [[Dumping.address(key), 1], [2, Dumping.address(long)]]
      # Since Ruby 4.0 an object of the VM's own holds the instance variables.
      fields = line[named].fetch("labels").index("fields")
      holder = fields ? objects[line[named]["references"][fields]] : line[named]
      p line[hashes[1]]["labels"], holder["ivars"]["@name"] == Dumping.address(key)
      [tail, middle].each do |array|
        record = line[array]
        p record["shared"] ? objects[record["shared"]]["data"][record["offset"], array.size] == array.map { |text| Dumping.address(text) } : nil
      end
      p line[tail]["offset"], line[long]["offset"].nil? || line[long]["offset"] == 0
    RUBY
    marks = "[true, true, nil, nil, nil, true]"
    expect(lines).to eq([marks, "true", '["key", "[2]"]', "true", "true", "true", "40", "true"])
  end

  it "have a label wherever Ruby knows one" do
    lines = dump_hostile(<<~'RUBY', ruby_args: ["-I#{heaps}"])
      Dumping.write(path["dump"], globals: [["$hostile_global", $hostile_global]])
      objects = Dumping.objects(path["dump"])
      labels = lambda do |object|
        record = objects.fetch(object.is_a?(Hash) && object["_id"] ? object["_id"] : Dumping.address(object))
        # The first label of each: a class refers to a method from its cache, too.
        record.fetch("references").zip(record.fetch("labels")).uniq(&:first).to_h.invert
      end
      value = ->(address) { objects.fetch(address)["data"] }
      jane = $hostile[2].first
      puts labels[jane].transform_values { |a| objects[a]["type"] }.inspect
      options = objects[labels[jane]["@options"]]
      puts labels[options].transform_values(&value).reject { |label,| label == "key" || label.include?("0x") }.inspect
      puts value[labels[objects[labels[jane]["@tags"]]]["[2]"]]
      account = labels[Hostile::Account]
      puts account.keys.grep(/\A(?:super|VERSION|@@count|@registry|#name|#initialize)\z/).sort.inspect unless RUBY_VERSION >= "4"
      puts labels[Hostile].keys.grep(/\A[A-Z]/).sort.inspect
      puts value[labels[$hostile[2][3]][".left"]]
      puts value[labels[objects["root:global_tbl"]]["$hostile_global"]]
      closure = Hostile.closure
      Dumping.write(path["again"])
      objects = Dumping.objects(path["again"])
      block = objects[Dumping.address(closure[0])]
      puts objects[block["references"][block["labels"].index("self")]]["name"]
      env = objects[block["references"][block["labels"].index("env")]]
      puts value[labels[env]["local captured"]], env["locals"]["number"], block["captured"].keys.inspect
      puts block.values_at("lambda", "source_line").inspect
    RUBY
    expected = [
      '{"@name"=>"string", "@tags"=>"array", "@options"=>"hash"}',
      '{"[\"user:42\"]"=>"by string", "[:user]"=>"by symbol", "[7]"=>"by number"}',
      "tag of jane",
      ('["#initialize", "#name", "@@count", "@registry", "VERSION", "super"]' if RUBY_VERSION < "4"),
      '["Account", "Blank", "Broken", "Complicated", "Point", "Wide"]',
      "left", "value of a global", "Hostile", "captured by a proc", "42", '["captured", "number"]',
      "[false, 47]"
    ].compact
    lines = lines.map { |line| line.gsub('" => "', '"=>"') }
    expect(lines.first(expected.size)).to eq(expected)
  end
end
