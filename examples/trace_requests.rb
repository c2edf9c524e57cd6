# frozen_string_literal: true

# Which requests cost most, and of what? Traces a small Rack app, and shows what `memprof trace` makes of it.
#
#   ruby examples/trace_requests.rb
require "memprof/tracer"
require "rbconfig"
require "tmpdir"

# Three pages: one is slow, one makes many objects, one is neither.
app = ->(env) do
  case env["PATH_INFO"]
  when "/slow" then sleep 0.005
  when "/wasteful" then Array.new(5_000) { |number| "item #{number}" }
  end
  [200, { "content-type" => "text/plain" }, ["hello"]]
end

Dir.mktmpdir do |directory|
  path = File.join(directory, "requests.json")
  traced = Memprof::Tracer.new(app, path: path)
  20.times do
    %w[/ /slow /wasteful].each { |page| traced.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => page }) }
  end

  command = File.expand_path("../exe/memprof", __dir__)
  library = File.expand_path("../lib", __dir__)
  system(RbConfig.ruby, "-I#{library}", command, "trace", "--limit", "3", path, exception: true)
end
