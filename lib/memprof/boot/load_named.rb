# frozen_string_literal: true

# What `memprof require` runs, by -e, as what a file of memprof allocates is not counted: requires each
# argument, a file or a gem, as Bundler.require finds it.
$PROGRAM_NAME = "memprof require"
ARGV.each do |name|
  file = File.file?(name) && (name.include?("/") || name.end_with?(".rb"))
  begin
    require file ? File.expand_path(name) : name
  rescue LoadError => e
    raise unless e.path == name && name.include?("-")

    require name.tr("-", "/")
  end
rescue LoadError => e
  abort("memprof: cannot load #{name}: #{e.message.lines.first.chomp}")
end
