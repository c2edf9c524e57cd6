# frozen_string_literal: true

namespace :memprof do
  desc "Show what each file costs that the application requires when it boots"
  task :boot do
    command = File.expand_path("../../../exe/memprof", __dir__)
    exec(RbConfig.ruby, command, "boot", chdir: Rails.root.to_s)
  end

  desc "Request each GET route without parameters, and show what a request allocates and retains"
  task :routes, %i[count limit] => :environment do |_task, arguments|
    count, limit = Memprof::Rails::Arguments.numbers(arguments, count: 20, limit: 30)
    routes = Memprof::Rails::Routes.new(Rails.application)
    paths = routes.paths
    abort("memprof: this application has no GET route without parameters") if paths.empty?

    costs = routes.costs(paths, count)
    puts "What a request costs, on average of #{count}:", "", routes.table(costs.first(limit)).to_text
    more = costs.size - limit
    puts "", "and #{more} more: rake memprof:routes[#{count},#{costs.size}]" if more.positive?
  end

  desc "Request a path again and again, and show which lines leak"
  task :leaks, %i[path count] => :environment do |_task, arguments|
    (count,) = Memprof::Rails::Arguments.numbers(arguments, count: 20)
    path = arguments[:path] || "/"
    routes = Memprof::Rails::Routes.new(Rails.application)
    begin
      status = routes.request(path)
    rescue StandardError, ScriptError => e
      abort("memprof: GET #{path} raises #{e.class}: #{e.message.lines.first.to_s.chomp}")
    end
    abort("memprof: GET #{path} answers #{status}") unless Memprof::Rails::Routes.page?(status)

    puts Memprof.growth(times: count) { routes.request(path) }
  end
end
