# frozen_string_literal: true

# Why is a page slow? Two pages of a Rack app show the same shelf of books; one asks the database once for
# each book. `memprof trace` shows which, and how many queries it takes. Needs a PostgreSQL server that the
# variables of libpq name (PGHOST, PGUSER, PGDATABASE and so on); its tables are temporary.
#
#   PGHOST=/run/postgresql PGDATABASE=postgres ruby examples/trace_queries.rb
begin
  require "pg"
  database = PG.connect
rescue LoadError
  puts "This example needs the gem pg: apt-get install ruby-pg, or gem install pg"
  exit
rescue PG::ConnectionBad => e
  puts "This example needs a PostgreSQL server: #{e.message}"
  exit
end
require "memprof/tracer"
require "rbconfig"
require "tmpdir"

database.exec("set client_min_messages to warning")
database.exec("create temporary table authors (id int primary key, name text)")
database.exec("create temporary table books (id int primary key, author_id int, title text)")
database.exec("insert into authors select id, 'Author ' || id from generate_series(1, 40) as id")
database.exec("insert into books select id, id, 'Book ' || id from generate_series(1, 40) as id")

# All books, each with its author.
one_by_one = -> do
  database.exec("select title, author_id from books").map do |book|
    author = database.exec_params("select name from authors where id = $1", [book["author_id"]]).first
    "#{book["title"]} by #{author["name"]}\n"
  end
end
together = -> do
  sql = "select title, name from books join authors on authors.id = books.author_id"
  database.exec(sql).map { |book| "#{book["title"]} by #{book["name"]}\n" }
end
pages = { "/shelf" => one_by_one, "/joined" => together }
app = ->(env) { [200, { "content-type" => "text/plain" }, pages.fetch(env["PATH_INFO"]).call] }

Dir.mktmpdir do |directory|
  path = File.join(directory, "requests.json")
  traced = Memprof::Tracer.new(app, path: path)
  10.times do
    pages.each_key { |page| traced.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => page }) }
  end

  command = File.expand_path("../exe/memprof", __dir__)
  library = File.expand_path("../lib", __dir__)
  arguments = ["trace", "--sort", "postgres_calls", "--limit", "2", path]
  system(RbConfig.ruby, "-I#{library}", command, *arguments, exception: true)
end
