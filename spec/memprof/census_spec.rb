# frozen_string_literal: true

module Shop
  class Article; end
  class Book < Article; end
  Price = Struct.new(:amount)
  class Empty < StandardError; end
end

class Shopping; end

RSpec.describe "Memprof.count_objects" do
  def users(*namespaces)
    Memprof.count_objects(*namespaces)["user_types"]
  end

  it "has the classic's keys, in its order" do
    expect(Memprof.count_objects.keys).to eq %w[total_slots free_slots basic_types user_types]
    expect(Memprof.count_objects(gc: true).first).to eq ["gc_ran", true]
    expect(Memprof.count_objects["user_types"]).to eq({})
    in_order = ObjectSpace.count_objects.keys.map(&:to_s)
    types = Memprof.count_objects["basic_types"].keys
    expect(types & in_order).to eq(in_order & types)
  end

  it "counts exactly what ObjectSpace.count_objects counts, before and after collections" do
    result = run_ruby(<<~'RUBY')
      require "memprof"
      none = []
      theirs = ObjectSpace.count_objects
      native = Memprof.send(:const_get, :Native)
      compare = lambda do
        GC.start
        GC.disable
        ObjectSpace.count_objects(theirs)
        ours = native.count_objects(none)
        GC.enable
        basic = theirs.reject { |key, count| count == 0 || key == :TOTAL || key == :FREE }
        next if [theirs[:TOTAL], theirs[:FREE]] == ours.values_at("total_slots", "free_slots") &&
          basic.map { |key, count| [key.to_s, count] }.sort == ours["basic_types"].to_a.sort

        abort [theirs, ours].inspect
      end
      native.count_objects(none)
      ObjectSpace.count_objects(theirs)
      Array.new(300_000) { Object.new } # pages that are empty afterwards
      compare.call
      kept = [1r, 1i, 2**80, 1.5e300, /x/, "m".match(/m/), :"dyn#{rand}", Struct.new(:a).new(1), $stdout, proc {}]
      kept << Array.new(1000) { |n| "s" * (n % 700) }
      compare.call
      kept.clear
      GC.compact if GC.respond_to?(:compact)
      compare.call
      puts "same"
    RUBY
    expect([result.stderr, result.stdout]).to eq ["", "same\n"]
  end

  it "counts objects of a class and of those in it by class, whatever their type" do
    GC.start
    # What earlier examples left may go only before or after.
    before, kept, now = without_gc do
      [users(Shop),
        [Shop::Article, Shop::Book, Shop::Book, Shop::Price, Shop::Empty, Shopping].map(&:new), users(Shop)]
    end
    classes = %w[Shop::Article Shop::Book Shop::Price Shop::Empty]
    expect(classes.map { |name| now[name] - before.fetch(name, 0) }).to eq [1, 2, 1, 1]
    expect(now).not_to include("Shopping")
    expect(users("Shop::B")).to eq({})
    expect(kept.size).to eq 6
  end

  it "takes Modules, Strings, Symbols and arrays of them" do
    kept = [Shop::Book.new, Shopping.new]
    names = %w[Shop::Book Shopping]
    expect(users([Shop::Book, :Shopping])).to include(*names)
    expect(users("::Shop::Book", [[:Shopping]])).to include(*names)
    expect(kept.size).to eq 2
  end

  it "counts an object with a singleton class as one of its class" do
    kept = Array.new(3) { Shop::Article.new.tap { |article| def article.own = 1 } }
    expect(users(Shop::Article)["Shop::Article"]).to be >= 3
    expect(kept.first.own).to eq 1
  end

  it "counts with a collection at every allocation" do
    kept = Array.new(5) { Shop::Book.new }
    expect(with_gc_stress { Memprof.count_objects(Shop, gc: true) }["user_types"]["Shop::Book"]).to be >= 5
    expect(kept.size).to eq 5
  end

  it "puts the most frequent class first" do
    kept = Array.new(50) { Shop::Price.new } + Array.new(100) { Shop::Empty.new }
    expect(users(Shop).keys & %w[Shop::Price Shop::Empty]).to eq %w[Shop::Empty Shop::Price]
    expect(kept.size).to eq 150
  end

  it "counts what is alive if it may collect before" do
    1000.times { Shopping.new }
    expect(Memprof.count_objects(Shopping, gc: true)["user_types"].fetch("Shopping", 0)).to be < 100
  end

  it "asks a class for its name as Module has it" do
    liar = Class.new { def self.name = raise("no") }
    stub_const("Liar", liar)
    kept = liar.new
    expect(users(liar)).to eq("Liar" => 1)
    expect(kept).to be_a liar
  end

  it "refuses what has no name" do
    [nil, "", :"", 1, Class.new].each do |namespace|
      expect { Memprof.count_objects(namespace) }
        .to raise_error(ArgumentError, /must be a class or module with a name, or its name, not /)
    end
  end

  it "copes with names that are no text" do
    expect(users("\xff\xfe", "Sh\u00f6p".encode("ISO-8859-1"))).to eq({})
  end
end
