# frozen_string_literal: true

module Memprof
  # Sessions by number, in Rust. See ext/memprof/src/binding.
  module Native
  end
end

# A platform gem, and a checkout shared by several Rubies, have one library per Ruby; a gem compiled at
# installation has a single one. `memprof attach` has already loaded it.
unless Memprof.const_get(:Native).respond_to?(:own_file=)
  root = File.expand_path("../..", __dir__)
  remedies = { "Rakefile" => "`rake compile:release` in #{root}", "ext" => "`gem pristine memprof`" }
  remedy = remedies.find { |name, _| File.exist?(File.join(root, name)) }&.last
  # A platform gem: another Ruby shares its directory, or the system is older than the libraries.
  remedy ||= "`gem install memprof --platform ruby`, which compiles it"
  # Beside this file, where RubyGems need not search; or in its directory of compiled extensions.
  names = ["#{RUBY_VERSION[/\A\d+\.\d+/]}/memprof", "memprof"]
  paths = names.map { |name| File.join(__dir__, name) }
  found = [*paths, *names.map { |name| "memprof/#{name}" }].any? do |feature|
    feature.start_with?("/") ? require_relative(feature) : require(feature)
    true
  rescue LoadError => e
    next if e.path == feature

    raise LoadError, "#{e.message}: run #{remedy}"
  end
  raise LoadError, "memprof is not compiled for Ruby #{RUBY_VERSION}: run #{remedy}" unless found
end

module Memprof
  # memprof's own allocations, such as the VM's inline caches of its code, are not recorded.
  Native.own_file = File.expand_path("../memprof.rb", __dir__)
  private_constant :Native
end
