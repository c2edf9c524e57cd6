# frozen_string_literal: true

require "tmpdir"

RSpec.describe "Statements of sqlite3" do
  before(:all) { need(client: "sqlite3") }

  # Runs code in a trace; besides the report gives what SQLite said that it ran.
  def asked(code, before: "nil")
    client_program(<<~RUBY)
      require "sqlite3"
      db = SQLite3::Database.new(":memory:")
      db.execute("create table books (id integer primary key, title text unique)")
      #{before}
      ran = []
      db.trace { |sql| ran << sql }
      tracers = traced(tracers: :sqlite) { #{code} }
      emit(**tracers, ran: ran, changes: db.total_changes)
    RUBY
  end

  def kinds(report)
    report["types"].transform_values { |kind| kind["queries"] }
  end

  def expect_agreement(result)
    expected = result["ran"].map do |sql|
      word = sql[/\A\s*(\w+)/, 1].to_s.downcase
      %w[select insert update delete].include?(word) ? word : "unknown"
    end
    expect(kinds(result["sqlite"])).to eq(expected.tally)
    expect(result["sqlite"]["queries"]).to eq(expected.size)
  end

  it "are those that SQLite ran" do
    result = asked(<<~RUBY)
      db.execute("insert into books values (?, ?)", [1, "Emma"])
      db.execute("select * from books") { |row| row }
      db.get_first_value("select count(*) from books")
      db.execute_batch("update books set title = 'E'; delete from books where id = 2; create index i on books (id);")
    RUBY
    expect_agreement(result)
    expect(kinds(result["sqlite"])).to eq("insert" => 1, "select" => 2, "update" => 1, "delete" => 1,
      "unknown" => 1)
  end

  it "are counted when their first row is asked for, and again when they are executed again" do
    five = %q(5.times { |id| db.execute("insert into books values (?, ?)", [id, id.to_s]) })
    result = asked(<<~RUBY, before: five)
      find = db.prepare("select * from books where id >= ?")
      3.times { |id| find.execute(id).to_a }
      rows = find.execute(0)
      2.times { rows.next }
      find.close
      db.prepare("select 1").close # is never run
    RUBY
    expect_agreement(result)
    expect(kinds(result["sqlite"])).to eq("select" => 4)
  end

  it "are counted when they fail, and in transactions" do
    result = asked(<<~RUBY, before: %q(db.execute("insert into books values (1, 'Emma')")))
      begin
        db.transaction do
          db.execute("update books set id = 2")
          db.execute("insert into books values (3, 'Emma')")
        end
      rescue SQLite3::ConstraintException
        db.execute("select 'rolled back'")
      end
      begin
        db.execute("select nothing")
      rescue SQLite3::SQLException
        nil # is not run
      end
    RUBY
    expect_agreement(result)
    expect(kinds(result["sqlite"])).to eq("update" => 1, "insert" => 1, "select" => 1, "unknown" => 2)
  end

  it "take the time of all their steps" do
    result = asked(<<~RUBY)
      db.create_function("wait", 1) { |call, id| sleep(0.02); call.result = id }
      db.execute("select wait(id) from (select 1 as id union select 2 union select 3)")
    RUBY
    expect(kinds(result["sqlite"])).to eq("select" => 1)
    expect(result["sqlite"]["time"]).to be_between(0.06, 20)
  end

  it_behaves_like "a client whose calls are traced", server: nil, library: "sqlite3",
    open: %q(SQLite3::Database.new(":memory:")), ask: %q(client.execute("select 1")),
    count: %i[sqlite queries]
end
