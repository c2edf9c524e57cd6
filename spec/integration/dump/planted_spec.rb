# frozen_string_literal: true

require "memprof/heap"
require "tmpdir"

# A program plants known objects, and dumps itself in all ways; answers are compared with what it knows.
RSpec.describe "What is read of a dump" do
  program = <<~'RUBY'
    require "objspace"
    require "memprof" if ENV["MEMPROF"]
    class Session
      def initialize = @text = "x" * 500
      def touch = @touched = true
    end
    module Audited; end
    class Order; prepend Audited; include Comparable; end

    # Sleeps before the rest is allocated: addresses that were left on its stack would keep it alive, too.
    other = Thread.new { sleep }
    Thread.pass until other.stop?
    SESSIONS = Array.new(500) { Session.new }
    # A call cache for the class, and one that is polymorphic.
    [*SESSIONS, Struct.new(:touch).new(1)].each(&:touch)
    SESSIONS.each { |session| session.touch }
    ORDER = Order.new
    garbage = Array.new(20_000) { Object.new }
    garbage = nil
    GC.start
    GC.start
    GC.disable
    path = ->(name) { File.join(ENV.fetch("DIRECTORY"), name) }
    File.open(path["plain.json"], "w") { |file| ObjectSpace.dump_all(output: file) }
    used = GC.stat(:heap_live_slots)
    pages = GC.stat(:heap_allocated_pages)
    File.open(path["full.json"], "w") { |file| ObjectSpace.dump_all(output: file, full: true) }
    File.write(path["marked.json"], "\u{feff}#{File.read(path["plain.json"])}")
    if ENV["MEMPROF"]
      %w[memprof binary objspace].each { |format| Memprof.dump_all(path["#{format}.dump"], format: format.to_sym) }
    end
    counts = [Session, Order, Thread, Array].to_h { |type| [type.name, ObjectSpace.each_object(type).count { _1.instance_of?(type) }] }
    puts used, pages, counts.values_at("Session", "Order", "Thread").join(" ")
  RUBY

  around do |example|
    Dir.mktmpdir do |directory|
      @directory = directory
      example.run
    end
  end

  def planted(program, env)
    result = run_ruby(program, env: { "DIRECTORY" => @directory, **env })
    expect(result.stderr).to eq("")
    result.stdout.lines(chomp: true)
  end

  def heap(name) = Memprof::Heap.open(File.join(@directory, name), index: false)

  def instances(heap)
    %w[Session Order Thread].map { |type| heap.where("class = #{type}").count }.join(" ")
  end

  it "has as many instances as the program, however it was dumped" do
    *, counts = planted(program, "MEMPROF" => "1")
    names = %w[plain.json full.json marked.json memprof.dump binary.dump objspace.dump]
    expect(names.to_h { |name| [name, instances(heap(name))] }).to eq(names.to_h { |name| [name, counts] })
    expect(counts).to eq("500 1 2")
  end

  it "has as many instances in a heap that was captured" do
    result = run_ruby(<<~RUBY, env: { "DIRECTORY" => @directory, "MEMPROF" => "1" })
      #{program}
      require "memprof/heap"
      capture = Memprof::Heap.capture(gc: false)
      puts %w[Session Order Thread].map { |type| capture.where("class = \#{type}").count }.join(" ")
    RUBY
    expect(result.stdout.lines(chomp: true).last(2).uniq.size).to eq(1), result.stdout + result.stderr
  end

  it "counts no free slots" do
    planted(program, {})
    plain, full = %w[plain.json full.json].map { |name| heap(name) }
    # Shapes are no objects; the `fields` of Ruby 4.0 count as a part of the object that they belong to.
    others = /"type":"(?:NONE|SHAPE)"|"imemo_type":"fields"/
    lines = File.foreach(File.join(@directory, "full.json"))
    objects = lines.select { |line| line.start_with?('{"address"') && !line.match?(others) }
    expect(objects.reject { |line| full.at(line[/0x\h+/]) }).to eq([])
    twice = objects.group_by { |line| line[/0x\h+/] }.values.reject(&:one?)
    expect(twice).to eq([])
    expect(full.size).to eq(objects.size)
    expect(full.size).to be_within(200).of(plain.size)
    expect(full.slots[:fill]).to be_within(2).of(plain.slots[:fill]).and be < 90
  end

  it "finds what retains most, whatever call caches there are" do
    planted(program, {})
    %w[plain.json full.json marked.json].each do |name|
      finding = heap(name).leaks(threshold: 5)[:findings].find { |found| found[:class] == "Session" }
      expect(finding).to include(count: [500], retained_by: [match(/ -> Array\b/)])
    end
  end

  it "reads the roots behind a byte order mark" do
    planted(program, {})
    plain, marked = %w[plain.json marked.json].map { |name| heap(name) }
    expect(marked.overview[:roots]).to eq(plain.overview[:roots])
    sources = [plain, marked].map { |heap| heap.source.slice(:skipped, :missing) }
    expect(sources.uniq.size).to eq(1)
  end
end
