# frozen_string_literal: true

require "json"

# The clients are stood in for by classes with the same methods, each in a process of its own.
RSpec.describe "the tracer sql" do
  def trace(code)
    result = run_ruby(<<~RUBY)
      require "json"
      require "memprof"
      require "stringio"
      class Trilogy; def query(sql) = sql; end
      CLIENT = Trilogy.new
      def report(**options, &block)
        io = StringIO.new
        Memprof.trace(io, tracers: :sql, **options, &block)
        JSON.parse(io.string)["sql"]
      end
      puts JSON.generate(begin; #{code}; end)
    RUBY
    expect(result.stderr).to eq("")
    JSON.parse(result.stdout)
  end

  it "has statements without their values, with the lines that sent them" do
    report = trace(<<~RUBY)
      def find(id) = CLIENT.query("select * from t where id = \#{id} and name = 'Bob'")
      report { [1, 2].each { |id| find(id) }; CLIENT.query("begin") }
    RUBY
    expect(report).to include("queries" => 3, "time" => be_positive)
    texts = report["statements"].to_h { |one| [one["sql"], one] }
    expect(texts.keys).to contain_exactly("select * from t where id = ? and name = ?", "begin")
    expect(texts["select * from t where id = ? and name = ?"])
      .to include("queries" => 2, "caller" => /\A.*:\d+ in (?:Object#)?find\z/, "slowest" => be_positive)
    expect(texts["begin"]["caller"]).to match(/\A\S+:\d+\z/)
    expect(report).not_to have_key("rest")
  end

  it "marks queries that a line repeats, and lists them first" do
    report = trace(<<~RUBY)
      report do
        9.times { CLIENT.query("begin") }
        4.times { |id| CLIENT.query("select \#{id} from four") }
        5.times { |id| CLIENT.query("select \#{id} from five") }
        CLIENT.query("select 1 from five")
      end
    RUBY
    rows = report["statements"].map { |one| one.values_at("sql", "queries", "n_plus_one") }
    expect(rows.first).to eq(["select ? from five", 5, true])
    expect(rows.drop(1)).to contain_exactly(["begin", 9, nil], ["select ? from four", 4, nil],
      ["select ? from five", 1, nil])
  end

  it "lists a bounded number of statements, and adds up the rest" do
    report = trace('report { 70.times { |id| CLIENT.query("select c" + id.to_s) } }')
    expect(report["queries"]).to eq(70)
    expect(report["statements"].size).to eq(50)
    expect(report["rest"]).to include("queries" => 20, "time" => be_positive)
  end

  it "looks for a bounded number of callers, and then uses the one that is known" do
    report = trace(<<~RUBY)
      report { 600.times { CLIENT.query("select 1") }; CLIENT.query("select a") }
    RUBY
    expect(report["statements"].map { |one| one.values_at("sql", "queries", "n_plus_one") })
      .to eq([["select ?", 600, true], ["select a", 1, nil]])
    expect(report["statements"].last).not_to have_key("caller")
  end

  it "is left out by except:" do
    expect(trace('report(tracers: %i[sql gc], except: "sql") { CLIENT.query("a") }')).to be_nil
    expect(trace('report(tracers: nil, except: %i[sql]) { CLIENT.query("a") }')).to be_nil
    expect { Memprof.trace(except: :nothing) { nil } }
      .to raise_error(ArgumentError, /\Aunknown tracer :nothing; expected one of: objects/)
  end

  it "records texts in any encoding, and what is no text" do
    report = trace(<<~RUBY)
      report do
        ["select 'a\\xFF', \\xFF", "select 'secret'".encode("UTF-16LE"), "select '\\u8868'".encode("Shift_JIS"), :x]
          .each { |sql| CLIENT.query(sql) }
      end
    RUBY
    expect(report["statements"].to_h { |one| one.values_at("sql", "queries") })
      .to eq("select ?, \\xFF" => 1, "select ?" => 2, "x" => 1)
  end

  it "counts a statement that raises, once, and the next one" do
    report = trace(<<~RUBY)
      class Trilogy; def query(sql) = sql == "fail" ? raise(IOError) : sql; end
      report { begin; CLIENT.query("fail"); rescue IOError; end; CLIENT.query("select 1") }
    RUBY
    expect(report["statements"].map { |one| one.values_at("sql", "queries") })
      .to contain_exactly(["fail", 1], ["select ?", 1])
  end

  it "ends a statement of pg where its result is passed to a block" do
    report = trace(<<~RUBY)
      module PG
        class Connection
          def exec(sql) = block_given? ? yield([1, 2]) : sql
          def prepare(name, sql) = name
          def exec_prepared(name, params = []) = name
        end
      end
      pg = PG::Connection.new
      pg.prepare("early", "select 'early'")
      report do
        pg.prepare("a1", "select * from t where id = $1")
        pg.exec_prepared("a1", [7])
        pg.exec_prepared("early")
        pg.exec("select id from books") { |rows| rows.map { |id| pg.exec("select \#{id}") } }
      end
    RUBY
    expect(report["statements"].to_h { |one| one.values_at("sql", "queries") })
      .to eq("select * from t where id = ?" => 1, "(prepared before the trace)" => 1,
        "select id from books" => 1, "select ?" => 2)
  end

  it "lets Ractors use clients, whose statements are not counted" do
    result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
      require "memprof"
      module PG
        class Connection
          def exec(sql) = sql
          def prepare(name, sql) = name
          def exec_prepared(name) = name
        end
      end
      Memprof.trace(File::NULL, tracers: :sql) do
        ractor = Ractor.new do
          pg = PG::Connection.new
          [pg.exec("a"), pg.prepare("b", "c"), pg.exec_prepared("b")]
        end
        p ractor.respond_to?(:value) ? ractor.value : ractor.take
      end
    RUBY
    expect([result.stderr, result.stdout]).to eq(["", "[\"a\", \"b\", \"b\"]\n"])
  end
end
