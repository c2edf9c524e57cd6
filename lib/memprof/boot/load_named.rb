# frozen_string_literal: true

# Run by `memprof require` with -e, as allocations in memprof's own files are not counted: requires each
# argument, a file or a gem, as Bundler.require does.
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
