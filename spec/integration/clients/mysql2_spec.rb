# frozen_string_literal: true

RSpec.describe "Queries of mysql2 to MariaDB" do
  before(:all) { need(server: :mariadb, client: "mysql2") }

  connect = <<~RUBY
    Mysql2::Client.new(socket: ENV["MYSQL_SOCKET"], username: ENV["MYSQL_USER"], database: "test")
  RUBY

  # Runs code in a trace, and gives what the server counted for the session meanwhile besides the report.
  define_method(:asked) do |code, before: "nil"|
    client_program(<<~RUBY, server: :mariadb)
      require "mysql2"
      client = #{connect}
      client.query("create temporary table books (id int primary key, title text) engine=innodb")
      #{before}
      status = -> { client.query("show session status").to_h { |row| row.values }.transform_values(&:to_i) }
      status.call
      idle = status.call
      first = status.call
      tracers = traced(tracers: %i[mysql fd]) { #{code} }
      last = status.call
      emit(**tracers, server: last.to_h { |name, value| [name, value - first[name] - (first[name] - idle[name])] })
    RUBY
  end

  def kinds(report)
    report["types"].transform_values { |kind| kind["queries"] }
  end

  it "leave their codes in the record of a request that raises" do
    result = exception_in_request('client.query("select * from nowhere")', server: :mariadb,
      before: "require \"mysql2\"; client = #{connect}")
    expect(result).to eq("exception" => "Mysql2::Error",
      "exception_code" => { "class" => "Mysql2::Error", "error_number" => 1146, "sqlstate" => "42S02" })
  end

  # The number of queries, all and by kind, is the one that the server has.
  def expect_agreement(result)
    report, server = result.values_at("mysql", "server")
    # A query with a cursor has the server asked for rows besides.
    expect(report["queries"]).to eq(server["Questions"] - server["Com_stmt_fetch"])
    %w[select insert update delete].each do |kind|
      expect(kinds(report).fetch(kind, 0)).to eq(server["Com_#{kind}"]), kind
    end
  end

  it "are those that the server got, of the same bytes" do
    result = asked(<<~RUBY)
      client.query("insert into books values (1, 'Emma'), (2, 'Persuasion')")
      client.query("select * from books").to_a
      client.query("select * from books", stream: true, cache_rows: false).each { |row| row }
      client.query("/* no comment */ set @a = 1")
      client.query("update books set title = 'E' where id = 1")
      client.query("delete from books")
    RUBY
    expect_agreement(result)
    expect(kinds(result["mysql"])).to eq("select" => 2, "insert" => 1, "update" => 1, "delete" => 1,
      "unknown" => 1)
    expect(result["fd"]["send"]["actual"]).to eq(result["server"]["Bytes_received"])
    # How long numbers are that the server says of itself differs by some digits.
    expect(result["fd"]["recv"]["actual"]).to be_within(30).of(result["server"]["Bytes_sent"])
  end

  it "are counted when a prepared statement is executed" do
    result = asked(<<~RUBY)
      insert = client.prepare("insert into books values (?, ?)")
      3.times { |id| insert.execute(id, "title") }
      find = client.prepare("select * from books where id = ?")
      2.times { |id| find.execute(id).to_a }
      client.prepare("select id from books").execute(stream: true, cache_rows: false).each { |row| row }
      [insert, find].each(&:close)
    RUBY
    expect_agreement(result)
    expect(result["server"]).to include("Com_stmt_execute" => 6, "Com_stmt_prepare" => 3)
    expect(kinds(result["mysql"])).to eq("select" => 3, "insert" => 3)
  end

  it "take as long as the server does, asked for and fetched later, too" do
    result = asked(<<~RUBY)
      client.query("select sleep(0.1)", async: true)
      IO.select([IO.for_fd(client.socket, autoclose: false)])
      client.async_result
      client.query("insert into books values (sleep(0.05), 'slow')")
    RUBY
    expect_agreement(result)
    types = result["mysql"]["types"]
    expect(types["select"]["time"]).to be_between(0.1, 20)
    expect(types["insert"]["time"]).to be_between(0.05, 20)
  end

  it "are counted when they fail, and in transactions" do
    result = asked(<<~RUBY, before: %q(client.query("insert into books values (1, 'Emma')")))
      failed = ["insert into books values (1, 'again')", "select nothing", "drop"].count do |sql|
        client.query(sql) && false
      rescue Mysql2::Error
        true
      end
      raise "\#{failed} failed" unless failed == 3

      client.query("begin")
      client.query("delete from books")
      client.query("rollback")
      begin
        client.prepare("select nothing")
      rescue Mysql2::Error
        nil # is no query
      end
      client.ping
    RUBY
    expect(result["mysql"]["queries"]).to eq(result["server"]["Questions"]).and eq(6)
    expect(result["server"]).to include("Com_begin" => 1, "Com_rollback" => 1)
    expect(kinds(result["mysql"])).to eq("select" => 1, "insert" => 1, "delete" => 1, "unknown" => 3)
  end

  it "take as long as they were waited for, also when a timeout ends that" do
    result = client_program(<<~RUBY, server: :mariadb)
      require "mysql2"
      options = { socket: ENV["MYSQL_SOCKET"], username: ENV["MYSQL_USER"], database: "test" }
      client = Mysql2::Client.new(read_timeout: 1, **options)
      begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      tracers = traced(tracers: :mysql) do
        client.query("select sleep(3)")
      rescue Mysql2::Error::TimeoutError
        nil
      end
      length = Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun
      emit(length: length, **tracers)
    RUBY
    expect(kinds(result["mysql"])).to eq("select" => 1)
    expect(result["mysql"]["time"]).to be_between(1, result["length"])
  end

  it "have their kinds for as long as they are prepared, also between requests" do
    result = client_program(<<~RUBY, server: :mariadb)
      require "mysql2"
      require "memprof/tracer"
      clients = Array.new(3) { #{connect} }
      Memprof.trace_filename = "\#{Dir.mktmpdir}/requests.json"
      app = ->(env) { env["statements"].each { |one| one.execute.to_a } && [200, {}, []] }
      tracer = Memprof::Tracer.new(app, tracers: :mysql)
      statements = clients.flat_map { |client| Array.new(200) { |id| client.prepare("select \#{id}") } }
      tracer.call("statements" => statements)
      tracer.call("statements" => statements)
      clients.first.query("create temporary table books (id int)")
      statements.shift(200).each(&:close)
      again = Array.new(200) { clients.first.prepare("delete from books") }
      tracer.call("statements" => again)
      lines = File.readlines(Memprof.trace_filename).map { |line| JSON.parse(line)["tracers"]["mysql"] }
      FileUtils.rm_r(File.dirname(Memprof.trace_filename))
      emit(lines: lines)
    RUBY
    expect(result["lines"].map { |line| kinds(line) })
      .to eq([{ "select" => 600 }, { "select" => 600 }, { "delete" => 200 }])
  end

  it_behaves_like "a client whose calls are traced", server: :mariadb, library: "mysql2",
    open: connect, ask: %q(client.query("select 1").first), count: %i[mysql queries]

  it_behaves_like "a client that waits for the GVL", server: :mariadb, library: "mysql2",
    open: connect, ask: %q(client.query("select 1").first), tracer: :mysql
end
