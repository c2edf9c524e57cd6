# frozen_string_literal: true

RSpec.describe "Queries of pg to PostgreSQL" do
  before(:all) { need(server: :postgres, client: "pg") }

  # Runs code in a trace; besides the report gives the statements of the server's log that are of this client.
  def asked(code)
    client_program(<<~RUBY, server: :postgres)
      require "pg"
      name = "spec-\#{Process.pid}"
      client = PG.connect(application_name: name)
      client.exec("create temporary table books (id int primary key, title text)")
      mark = File.size(ENV["PG_LOG"])
      tracers = traced(tracers: %i[postgres fd]) { #{code} }
      client.exec("select 'the end'")
      mine = /^\\[\#{name}\\] LOG:  (?:statement|execute [^:]*): (.*)/
      emit(**tracers, server: File.read(ENV["PG_LOG"])[mark..].scan(mine).flatten[...-1])
    RUBY
  end

  def kinds(report)
    report["types"].transform_values { |kind| kind["queries"] }.reject { |_, queries| queries.zero? }
  end

  # As many of each kind as the server has in its log.
  def expect_agreement(result)
    expected = result["server"].map { |sql| sql[/\A\w+/].downcase }.map do |word|
      %w[select insert update delete].include?(word) ? word : "unknown"
    end
    expect(kinds(result["postgres"])).to eq(expected.tally)
    expect(result["postgres"]["queries"]).to eq(expected.size)
  end

  it "are those that the server got" do
    result = asked(<<~RUBY)
      client.exec("insert into books values (1, 'Emma')")
      client.exec_params("insert into books values ($1, $2)", [2, "Persuasion"])
      client.exec("select * from books").to_a
      client.exec_params("update books set title = $1", ["?"])
      client.sync_exec("select 1")
      client.sync_exec_params("select $1::int", [1])
      client.exec("delete from books")
    RUBY
    expect_agreement(result)
    expect(kinds(result["postgres"])).to eq("select" => 3, "insert" => 2, "update" => 1, "delete" => 1)
  end

  it "leave the SQLSTATE in the record of a request that raises" do
    result = exception_in_request('client.exec("select * from nowhere")', server: :postgres,
      before: 'require "pg"; client = PG.connect')
    expect(result).to eq("exception" => "PG::UndefinedTable",
      "exception_code" => { "class" => "PG::UndefinedTable", "sqlstate" => "42P01" })
  end

  it "are counted when a prepared statement is executed, by its kind" do
    result = asked(<<~RUBY)
      client.prepare("add", "insert into books values ($1)")
      3.times { |id| client.exec_prepared("add", [id]) }
      client.sync_prepare("find", "select * from books where id = $1")
      2.times { |id| client.sync_exec_prepared("find", [id]) }
      client.send_prepare("all", "select count(*) from books")
      client.get_last_result
      client.send_query_prepared("all", [])
      client.get_last_result
    RUBY
    expect_agreement(result)
    expect(kinds(result["postgres"])).to eq("select" => 3, "insert" => 3)
  end

  it "have the kind of their answer where they were prepared before the trace" do
    result = client_program(<<~RUBY, server: :postgres)
      require "pg"
      client = PG.connect
      client.exec("create temporary table books (id int primary key, title text)")
      client.exec("prepare add (int) as insert into books values ($1)")
      client.prepare("change", "update books set title = $1")
      client.prepare("find", "select * from books")
      client.prepare("remove", "delete from books where id = $1")
      emit(**traced(tracers: %i[postgres]) {
        3.times { |id| client.exec("execute add (\#{id})") }
        client.send_query("EXECUTE add (4)")
        client.get_last_result
        3.times { client.exec_prepared("change", ["Emma"]) }
        2.times { client.sync_exec_prepared("find", []).to_a }
        client.send_query_prepared("remove", [4])
        client.get_last_result
      })
    RUBY
    expect(kinds(result["postgres"])).to eq("insert" => 4, "update" => 3, "select" => 2, "delete" => 1)
    expect(result["postgres"]["queries"]).to eq(10)
  end

  it "take until their result is there when they are sent, also without blocking" do
    result = asked(<<~RUBY)
      client.send_query("select pg_sleep(0.1)")
      client.get_last_result
      client.setnonblocking(true)
      client.send_query_params("delete from books where pg_sleep(0.01) is null", [])
      client.block
      client.setnonblocking(false)
      client.get_last_result
      client.send_query("insert into books select 1 from pg_sleep(0.05)")
      sleep(0.01) while client.consume_input && client.is_busy
      nil while client.get_result
    RUBY
    expect_agreement(result)
    types = result["postgres"]["types"]
    expect(types["select"]["time"]).to be_between(0.1, 20)
    expect(types["insert"]["time"]).to be_between(0.05, 20)
  end

  it "are a query each when data is copied" do
    result = asked(<<~RUBY)
      client.copy_data("copy books from stdin") { 100.times { |id| client.put_copy_data("\#{id}\\ttitle\\n") } }
      lines = 0
      client.copy_data("copy books to stdout") { lines += 1 while client.get_copy_data }
      raise "\#{lines} lines" unless lines == 100
    RUBY
    expect_agreement(result)
    expect(kinds(result["postgres"])).to eq("unknown" => 2)
  end

  it "are counted when they fail, and in transactions" do
    result = asked(<<~RUBY)
      begin
        client.transaction do
          client.exec("insert into books values (1), (1)")
        end
      rescue PG::UniqueViolation
        client.exec("select 'rolled back'")
      end
      begin
        client.exec("select nothing")
      rescue PG::UndefinedColumn
        client.transaction { client.exec("update books set id = 2") }
      end
    RUBY
    expect_agreement(result)
    expect(result["server"].grep(/BEGIN|COMMIT|ROLLBACK/).size).to eq(4)
  end

  it "are counted each when they are sent in a pipeline" do
    result = asked(<<~RUBY)
      client.enter_pipeline_mode
      3.times { |id| client.send_query_params("insert into books values ($1)", [id]) }
      client.send_query_params("select pg_sleep(0.05)", [])
      client.pipeline_sync
      nil until client.get_result&.result_status == PG::PGRES_PIPELINE_SYNC
      client.exit_pipeline_mode
    RUBY
    expect_agreement(result)
    expect(result["postgres"]["time"]).to be_between(0.05, 20)
  end

  # Runs code in requests of a server: `request { }` gives its report. As in a server, calls stay interposed.
  def requested(code)
    client_program(<<~RUBY, server: :postgres)
      require "pg"
      require "timeout"
      require "memprof/tracer"
      APP = ->(env) { env["action"].call && [200, {}, []] }
      Memprof.trace_filename = "\#{Dir.mktmpdir}/requests.json"
      TRACER = Memprof::Tracer.new(APP, tracers: %i[postgres])
      def request(&action)
        TRACER.call("action" => action)
        line = JSON.parse(File.readlines(Memprof.trace_filename).last)
        line["tracers"]["postgres"].merge("length" => line["time"])
      end
      client = PG.connect
      #{code}
      FileUtils.rm_r(File.dirname(Memprof.trace_filename))
    RUBY
  end

  it "take as long as they were waited for, also when a timeout ends that, and cost later requests nothing" do
    result = requested(<<~RUBY)
      slow = request do
        Timeout.timeout(0.3) { client.exec("select pg_sleep(2)") }
      rescue Timeout::Error
        nil
      end
      sleep 0.3
      other = PG.connect
      elsewhere = request { other.exec("select 1") }
      client.cancel
      sleep 0.3
      emit(slow: slow, elsewhere: elsewhere, again: request { sleep 0.3; client.exec("select 1") })
    RUBY
    # The timeout begins before the query does.
    expect(result["slow"]["time"]).to be_between(0.1, result["slow"]["length"])
    expect(kinds(result["slow"])).to eq("select" => 1)
    expect(result["elsewhere"]["time"]).to be <= result["elsewhere"]["length"]
    expect(result["again"]["time"]).to be <= result["again"]["length"] - 0.3
    expect(kinds(result["again"])).to eq("select" => 1)
  end

  it "have their kinds for as long as they are prepared, also between requests" do
    result = requested(<<~RUBY)
      client.exec("create temporary table books (id int primary key, title text)")
      clients = Array.new(3) { PG.connect }
      clients.each { |one| 200.times { |id| one.prepare("a\#{id}", "select \#{id}") } }
      client.prepare("early", "insert into books values ($1)")
      early = request { 2.times { |id| client.exec_prepared("early", [id]) } }
      warm = request { clients.each { |one| 200.times { |id| one.exec_prepared("a\#{id}") } } }
      client.exec("deallocate early")
      client.prepare("early", "delete from books where id = $1")
      emit(early: early, warm: warm, again: request { client.exec_prepared("early", [1]) })
    RUBY
    expect(kinds(result["early"])).to eq("insert" => 2)
    expect(kinds(result["warm"])).to eq("select" => 600)
    expect(kinds(result["again"])).to eq("delete" => 1)
  end

  it_behaves_like "a client whose calls are traced", server: :postgres, library: "pg",
    open: "PG.connect", ask: %q(client.exec("select 1").ntuples), count: %i[postgres queries]

  it_behaves_like "a client that waits for the GVL", server: :postgres, library: "pg",
    open: "PG.connect", ask: %q(client.exec("select 1").ntuples), tracer: :postgres
end
