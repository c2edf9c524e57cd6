# frozen_string_literal: true

require "open3"
require "tmpdir"

# A program with secrets in every place that a dump shows: what is withheld must be in no byte of it.
RSpec.describe "Dumps without contents" do
  # Digits that nothing else has: a number must not be in an address by chance.
  secrets = <<~'RUBY'
    require "memprof"

    class Safe
      LIMIT = 4111111111111101
      RATE = 411111.111111102
      MODE = :secret_411111_constant
      NAME = "secret_411111_name"
      @count = 4111111111111103
      @@count = 4111111111111104
      Entry = Struct.new(:number, :rate)
      def initialize
        @card = 4111111111111105
        @rate = 411111.111111106
        @huge = 4111111111111107_4111111111111107_4111111111111107
        @token = :secret_411111_ivar
        @negative = -4111111111111108
        @long = "secret_411111_long" * 50
        @chilled = "secret_411111"
      end
    end

    MANY = Class.new(Safe) do
      def initialize
        super
        9.times { |index| instance_variable_set("@other#{index}", 4111111111111109) }
      end
    end

    $number = 4111111111111110
    $rate = 411111.111111111
    $symbol = :secret_411111_global
    variable = 4111111111111112
    other = 411111.111111113
    $kept = [
      Safe.new, MANY.new, 4111111111111114, 411111.111111115, -411111.111111116e300, :secret_411111_element,
      { 4111111111111117 => 4111111111111118, 411111.111111119 => :secret_411111_value, secret_411111_key: 1,
        "secret_411111_text" => 2, [4111111111111120] => 3 },
      Hash.new(4111111111111121), Safe::Entry.new(4111111111111122, 411111.111111123),
      Rational(4111111111111124, 4111111111111125), Complex(4111111111111126, 411111.111111127),
      4111111111111128..4111111111111129, /secret_411111_source/, "secret_411111_match".match(/(.*)/),
      proc { [variable, other] }, binding, :"secret_411111 #{rand}", 4111111111111130.method(:+),
      [4111111111111131].each, 4111111111111132.step(by: 2), Time.now, Exception.new("secret_411111_message"),
      "secret_411111 shared string, which is long enough not to be in its slot"[1..], Array.new(40) { 4111111111111133 }.drop(1),
      { 4111111111111134 => 1 }.compare_by_identity
    ]
    "a".dup.instance_variable_set(:@secret, 4111111111111135).then { |text| $kept << text }
    Thread.current[:local] = 4111111111111136
    Thread.current.thread_variable_set(:variable, 411111.111111137)
    Memprof.start
    # Code that was evaluated under a name of its own: in frames, backtraces, iseqs and allocation sites.
    def dump(settings)
      settings.each { |path, options| Memprof.dump_all(path, **options) }
    end
    other = Thread.new { eval("Thread.stop", binding, "secret_411111_thread.erb", 1) }
    Thread.pass until other.stop?
    $code = eval("$made = Object.new\n->(settings) { dump(settings) }", binding, "secret_411111_code", 1)
    ARGV.replace(["secret_411111_argument"])
    $PROGRAM_NAME = "secret_411111_program"
    formats = { memprof: "json", objspace: "objspace", binary: "memprof", heap_dump: "heap_dump" }
    settings = VALUES.flat_map { |values| formats.map { |format, ending| ["#{values}.#{ending}", { format: format, values: values }] } }
    $code.call(settings)
    Memprof.dump_all("forked.json", values: :none, fork: true)
    File.open("secret_411111_file", "w") { |file| Memprof.dump_all("open.json", values: :hash) }
  RUBY

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  def dumped(values, secrets)
    code = "VALUES = #{values.inspect}\n#{secrets}"
    result = run_ruby(code, args: ["secret_411111_word"], chdir: @directory, timeout: 400)
    raise result.stderr unless result.success?

    Dir.glob("*.{json,objspace,memprof,heap_dump}", base: @directory)
  end

  # Bytes of a dump; what the binary format packs is unpacked.
  def bytes(name)
    path = File.join(@directory, name)
    return File.binread(path) unless name.end_with?(".memprof")

    text = File.join(@directory, "#{name}.json")
    expect(run_memprof("convert", path, text)).to be_success
    File.binread(path) + File.binread(text)
  end

  # An address may have these digits, too: what comes before them is no digit of one.
  def leaks(name)
    text = bytes(name)
    places = text.enum_for(:scan, /(?<![0-9a-fx])411111|secret_4/n).map { Regexp.last_match.begin(0) }
    places.map { |place| text[[place - 60, 0].max, 100] }
  end

  it "contain no number, text or name of the program, in any format" do
    names = dumped(%i[hash length none], secrets)
    expect(names.size).to eq(14)
    expect(names.to_h { |name| [name, leaks(name)] }.reject { |_, found| found.empty? }).to eq({})
  end

  it "contain none when a dump with contents is converted" do
    expect(dumped(%i[full], secrets)).to include("full.json", "full.memprof", "full.heap_dump")
    full = bytes("full.json")
    expect(full.scan(/41111111111111\d\d/n).uniq.size).to be > 25
    expect(full).to include("secret_411111_code", "secret_411111_thread.erb")
    %w[json memprof heap_dump objspace].zip(%w[hash length none none]) do |ending, values|
      from, to = ["full.#{ending}", "bare.json"].map { |name| File.join(@directory, name) }
      expect(run_memprof("convert", "--force", "--contents", values, from, to)).to be_success
      expect([ending, leaks("bare.json")]).to eq([ending, []])
    end
  end
end
