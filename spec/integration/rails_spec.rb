# frozen_string_literal: true

require "tempfile"

RSpec.describe "Memprof::Middleware in Rails" do
  app = File.expand_path("../fixtures/apps/rails/app.rb", __dir__)
  heading = "\n#{"-" * 80}\n#{"-" * 80}\n"

  before(:all) do
    found = run_ruby("require 'logger'; require 'rails'; require 'action_controller/railtie'")
    skip "Rails is not installed (the package ruby-railties, the gem railties)" unless found.success?
  end

  # Answers and reports of an app that is asked these paths one after the other.
  def ask(app, *paths)
    Tempfile.create("reports") do |file|
      stdout, stderr, status = run_ruby(app, args: paths, env: { "REPORTS" => file.path })
      expect(status).to be_success, stderr
      yield stdout.lines.map(&:chomp), file.read
    end
  end

  def orders(report)
    report[/^ *(\d+) .*app\.rb:\d+:Order$/, 1].to_i
  end

  it "reports each request, and changes no answer" do
    ask(app, "/orders", "/stream", "/file", "/broken", "/missing") do |answers, output|
      expect(answers).to eq(['/orders 200 "7 orders"', '/stream 200 "streamed"',
        "/file 200 #{File.readlines(app).first.inspect}", *answers.last(2)])
      expect(answers.last(2)).to match([%r{\A/broken 500}, %r{\A/missing 404}])
      reports = output.split(heading).drop(1)
      # Rails runs what streams once for its ETag and once more for the answer, from 7.1 on.
      expect(reports.map { |report| orders(report) }).to match([7, be(3).or(be(6)), 0, 1, 0])
    end
  end

  it "reports only chosen requests" do
    ask(app, "/quiet", "/orders") do |answers, output|
      expect(answers).to eq(['/quiet 200 "7 orders"', '/orders 200 "14 orders"'])
      expect(output.scan(heading).size).to eq(1)
      expect(orders(output)).to eq(7)
    end
  end
end
