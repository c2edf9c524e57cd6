# frozen_string_literal: true

module Memprof
  # Sessions by number, in Rust. See ext/memprof/src/binding.
  module Native
  end
end

# A precompiled gem, and a checkout that several Rubies share, have one library for each Ruby; a gem compiled
# while it is installed has a single one. `memprof attach` has loaded it already.
unless Memprof::Native.respond_to?(:own_file=)
  names = ["memprof/#{RUBY_VERSION[/\A\d+\.\d+/]}/memprof", "memprof/memprof"]
  found = names.any? do |name|
    require name
    true
  rescue LoadError => e
    raise unless e.path == name # it is there, and can't be loaded
  end
  unless found
    root = File.expand_path("../..", __dir__)
    remedies = { "Rakefile" => "`rake compile:release` in #{root}", "ext" => "`gem pristine memprof`" }
    remedy = remedies.find { |name, _| File.exist?(File.join(root, name)) }&.last
    # A platform gem, in a directory of gems that another Ruby uses, too.
    remedy ||= "`gem install memprof --platform ruby`, which compiles it"
    raise LoadError, "memprof is not compiled for Ruby #{RUBY_VERSION}: run #{remedy}"
  end
end

module Memprof
  # What memprof allocates for itself, such as the VM's inline caches of its own code, is not recorded.
  Native.own_file = File.expand_path("../memprof.rb", __dir__)
  private_constant :Native
end
