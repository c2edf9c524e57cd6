# frozen_string_literal: true

RSpec.describe "Statements of Active Record and client gems" do
  def statements(report)
    report["sql"]["statements"].to_h { |one| [one["sql"], one] }
  end

  describe "with Active Record" do
    before(:all) { %w[sqlite3 active_record].each { |library| need(client: library) } }

    def asked(code)
      client_program(<<~RUBY)
        require "logger"
        require "active_record"
        ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
        ActiveRecord::Schema.verbose = false
        ActiveRecord::Schema.define do
          create_table(:authors) { |table| table.string :name }
          create_table(:books) { |table| table.string :title; table.integer :author_id }
        end
        class Author < ActiveRecord::Base; end
        class Book < ActiveRecord::Base; belongs_to :author; end
        6.times { |id| Book.create!(title: "secret \#{id}", author: Author.create!(name: "secret")) }
        def page = Book.all.map { |book| book.author.name }
        page
        seen = []
        ActiveSupport::Notifications.subscribe("sql.active_record") { |*, event| seen << event[:sql] unless event[:cached] }
        emit(**traced(tracers: :sql) { #{code} }, seen: seen.size)
      RUBY
    end

    it "shows what a page asks for each of its rows" do
      report = asked("page")
      expect(report["sql"]["queries"]).to eq(7).and eq(report["seen"])
      first, second = report["sql"]["statements"]
      expect(first).to include("sql" => /\ASELECT "authors"\.\* FROM "authors" WHERE .* LIMIT \?\z/,
        "queries" => 6, "n_plus_one" => true, "caller" => /:\d+ in (?:Object#)?page\z/)
      expect(second).to include("sql" => 'SELECT "books".* FROM "books"', "queries" => 1)
    end

    it "counts once what goes through the client, and not what is in the query cache" do
      report = asked(<<~RUBY)
        Book.cache { 3.times { Book.where(title: "secret 1").to_a } }
        Book.connection.raw_connection.execute("select 'secret'")
        begin; Book.where("title = 'secret").to_a; rescue ActiveRecord::StatementInvalid; end
      RUBY
      expect(report["sql"]["queries"]).to eq(3)
      expect(report["sql"].to_s).not_to include("secret")
      expect(statements(report).keys).to include("select ?",
        'SELECT "books".* FROM "books" WHERE "books"."title" = ?')
    end

    # As Timeout is, up to Ruby 3.2. What is raised by the database is wrapped by Active Record.
    it "lets an exception from another thread pass, wherever it comes" do
      report = client_program(<<~RUBY)
        require "logger"
        require "active_record"
        ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
        class Cut < StandardError; end
        database = ActiveRecord::Base.connection
        work = -> { traced(tracers: :sql) { 2.times { database.execute("select 1") } } }
        work.call
        swallowed = interrupts = 0
        (1..4000).each do |number|
          count = 0
          point = TracePoint.new(:return, :b_return, :c_return) do |at|
            next unless at.path.include?("/lib/memprof/tracers/") && (count += 1) == number

            interrupts += 1
            Thread.current.raise(Cut)
          end
          begin
            point.enable { work.call }
            swallowed += 1 if count >= number
          rescue Cut, ActiveRecord::StatementInvalid
            nil
          end
          break if count < number
        end
        emit(swallowed: swallowed, interrupts: interrupts)
      RUBY
      expect(report["swallowed"]).to eq(0)
      expect(report["interrupts"]).to be > 50
    end

    it "counts what comes after a statement that was interrupted at its start" do
      report = client_program(<<~RUBY)
        require "logger"
        require "active_record"
        ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:")
        class Cut < StandardError; end
        database = ActiveRecord::Base.connection
        database.execute("select 1")
        cut = TracePoint.new(:return) do |at|
          Thread.current.raise(Cut) if at.method_id == :start && at.path.end_with?("/tracers/sql.rb")
        end
        interrupted = false
        begin
          traced(tracers: :sql) { cut.enable { database.execute("select 1") } }
        rescue Cut
          interrupted = true
        end
        report = traced(tracers: :sql) { database.raw_connection.execute("select 2"); database.execute("select 3") }
        emit(**report, interrupted: interrupted)
      RUBY
      expect(report["interrupted"]).to be(true)
      expect(report["sql"]["queries"]).to eq(2)
    end
  end

  # Where another thread sends a query.
  def asked_async(code, scope: :thread)
    client_program(<<~RUBY)
      require "logger"
      require "active_record"
      require "tempfile"
      if ActiveRecord::VERSION::MAJOR < 7
        emit(skipped: true)
        exit
      end
      ActiveRecord.async_query_executor = :global_thread_pool
      file = Tempfile.new("books")
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: file.path, pool: 5)
      ActiveRecord::Schema.verbose = false
      ActiveRecord::Schema.define { create_table(:books) { |table| table.string :title } }
      class Book < ActiveRecord::Base; end
      6.times { |id| Book.create!(title: "secret \#{id}") }
      Book.all.load_async.to_a
      asyncs = []
      ActiveSupport::Notifications.subscribe("sql.active_record") { |event| asyncs << event.payload[:async] }
      # Until the other thread has sent it.
      sent = ->(books) do
        future = books.instance_variable_get(:@future_result)
        sleep(0.001) while future.send(:pending?)
        books
      end
      def page(books) = books.to_a
      emit(**traced(tracers: :sql, scope: #{scope.inspect}) { #{code} }, asyncs: asyncs)
    RUBY
  end

  {
    thread: "of the thread that takes its result", process: "of the process, once"
  }.each do |scope, whose|
    it "counts a query of load_async in a trace #{whose}" do
      %w[sqlite3 active_record].each { |library| need(client: library) }
      report = asked_async(<<~RUBY, scope: scope)
        books = sent.call(Book.where(title: "secret 1").load_async)
        page(books)
        books.to_a
        page(Book.where(title: "secret 2"))
      RUBY
      skip "Rails 7 has load_async" if report["skipped"]

      expect(report["asyncs"]).to include(true)
      expect(report["sql"]["queries"]).to eq(2)
      one = statements(report).fetch('SELECT "books".* FROM "books" WHERE "books"."title" = ?')
      expect(one).to include("queries" => 2, "caller" => /:\d+ in (?:Object#)?page\z/, "time" => be > 0)
      expect(report["sql"].to_s).not_to include("secret")
    end
  end

  it "does not count a query of load_async whose result another thread takes" do
    %w[sqlite3 active_record].each { |library| need(client: library) }
    report = asked_async("books = sent.call(Book.all.load_async); Thread.new { books.to_a }.join")
    skip "Rails 7 has load_async" if report["skipped"]

    expect(report["sql"]).to eq({})
  end

  it "shows those of pg" do
    need(server: :postgres, client: "pg")
    report = client_program(<<~RUBY, server: :postgres)
      require "pg"
      connection = PG.connect
      emit(**traced(tracers: %i[sql postgres]) do
        connection.exec("select 'secret'") { |rows| rows.each { connection.exec_params("select $1::int", [7]) } }
        connection.prepare("one", "select $1::text, 'secret'")
        2.times { connection.exec_prepared("one", ["secret"]) }
      end)
    RUBY
    counts = statements(report).transform_values { |one| one["queries"] }
    expect(counts).to eq("select ?" => 1, "select ?::int" => 1, "select ?::text, ?" => 2)
    expect(report["sql"]["queries"]).to eq(report["postgres"]["queries"])
  end

  it "shows those of mysql2" do
    need(server: :mariadb, client: "mysql2")
    report = client_program(<<~RUBY, server: :mariadb)
      require "mysql2"
      client = Mysql2::Client.new(socket: ENV["MYSQL_SOCKET"], username: ENV["MYSQL_USER"], database: "test")
      emit(**traced(tracers: %i[sql mysql]) do
        client.query('select "secret", 7').to_a
        2.times { client.prepare("select ?, 'secret' as a").execute("secret") }
      end)
    RUBY
    counts = statements(report).transform_values { |one| one["queries"] }
    expect(counts).to eq("select ?" => 1, "select ? as a" => 2)
    expect(report["sql"]["queries"]).to eq(report["mysql"]["queries"])
  end

  def asked(code)
    need(client: "sqlite3")
    client_program(<<~RUBY)
      require "sqlite3"
      db = SQLite3::Database.new(":memory:")
      db.execute("create table books (id integer primary key, title text)")
      db.execute("insert into books values (1, 'a'), (2, 'b'), (3, 'c')")
      emit(**traced(tracers: %i[sql sqlite]) { #{code} })
    RUBY
  end

  it "shows those of sqlite3, each once for all of its rows, and those between its rows" do
    report = asked(<<~RUBY)
      db.execute("select id from books") { |row| db.execute("select title from books where id = \#{row.first}") }
      insert = db.prepare("insert into books values (?, ?)")
      2.times { |id| insert.execute(7 + id, "secret") }
      insert.close
      db.execute_batch("delete from books where id = 1; update books set title = 'secret';")
    RUBY
    counts = statements(report).transform_values { |one| one["queries"] }
    expect(counts).to eq("select id from books" => 1, "select title from books where id = ?" => 3,
      "insert into books values (?)" => 2, "delete from books where id = ?" => 1,
      "update books set title = ?" => 1)
    expect(report["sql"]["queries"]).to eq(report["sqlite"]["queries"])
  end

  it "has the time of all rows" do
    report = asked(<<~RUBY)
      db.create_function("wait", 1) { |call, id| sleep(0.02); call.result = id }
      db.execute("select wait(id) from books")
    RUBY
    expect(report["sql"]["time"]).to be_between(0.06, 20)
    expect(report["sql"]["statements"].first["slowest"]).to eq(report["sql"]["time"])
  end
end
