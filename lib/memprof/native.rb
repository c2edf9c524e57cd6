# frozen_string_literal: true

module Memprof
  # Sessions by number, in Rust. See ext/memprof/src/binding.
  module Native
  end
end

# A platform gem, and a checkout that several Rubies share, have one library for each Ruby; a gem that was
# compiled when it was installed has a single one. `memprof attach` has loaded it already.
unless Memprof::Native.respond_to?(:own_file=)
  root = File.expand_path("../..", __dir__)
  remedies = { "Rakefile" => "`rake compile:release` in #{root}", "ext" => "`gem pristine memprof`" }
  remedy = remedies.find { |name, _| File.exist?(File.join(root, name)) }&.last
  # A platform gem: another Ruby shares its directory, or the system is older than the libraries.
  remedy ||= "`gem install memprof --platform ruby`, which compiles it"
  names = ["memprof/#{RUBY_VERSION[/\A\d+\.\d+/]}/memprof", "memprof/memprof"]
  found = names.any? do |name|
    require name
    true
  rescue LoadError => e
    next if e.path == name

    raise LoadError, "#{e.message}: run #{remedy}"
  end
  raise LoadError, "memprof is not compiled for Ruby #{RUBY_VERSION}: run #{remedy}" unless found
end

module Memprof
  # What memprof allocates for itself, such as the VM's inline caches of its own code, is not recorded.
  Native.own_file = File.expand_path("../memprof.rb", __dir__)
  private_constant :Native
end
