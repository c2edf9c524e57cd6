# frozen_string_literal: true

require_relative "loading"
require_relative "printable"

module Memprof
  # Interprets a source file's path: which gem it belongs to, and its short form. The rules for gem and
  # standard library paths are defined in one place (crates/memprof-paths), which also groups profiles.
  module Paths
    INTERNAL = "<internal:"
    # The line of code that belongs to none, as while a file is compiled.
    NO_LINE = /:0(?=\z|:in | in )/
    # A C method that was not called by Ruby code.
    NO_FILE = "(no name):0"
    UNKNOWN = "(unknown line)"
    OWN_LIBRARY = Printable.utf8(File.expand_path("..", __dir__))
    OWN_FILES = ["#{OWN_LIBRARY}/memprof.rb", "#{OWN_LIBRARY}/memprof/"].freeze
    private_constant :INTERNAL, :NO_LINE, :NO_FILE, :UNKNOWN, :OWN_LIBRARY, :OWN_FILES

    # The gem, standard library or application that a file belongs to.
    def self.gem_of(path) = Native.gem_of(path)

    # The path starting at the gem, standard library or application, as with `normalize_paths`.
    def self.normalize(path) = Native.short_path(path)

    # The path as in memprof's own tables: starting at the gem or library, else relative to `directory`. A
    # line and a method may follow it.
    def self.short(path, directory = working_directory)
      path = path.sub(NO_FILE, UNKNOWN).sub(NO_LINE, "")
      return internal(path) if path.start_with?(INTERNAL)

      Native.library_path(path) || (directory ? path.delete_prefix("#{directory}/") : path)
    end

    # File and line as in memprof's own tables; without a line, only the file.
    def self.short_location(row, directory = working_directory)
      file = short(row.file, directory)
      row.line.zero? ? file : "#{file}:#{row.line}"
    end

    # RubyGems names its files as if they were the VM's own.
    def self.internal(path)
      library = Native.library_path(path.delete_prefix(INTERNAL))
      library ? INTERNAL + library.delete_prefix("ruby/lib/") : path
    end
    private_class_method :internal

    # Whether the file belongs to memprof.
    def self.own?(path) = path.start_with?(*OWN_FILES)

    # Whether the file belongs to the application, not to a gem, the standard library, the VM or memprof.
    def self.application?(path) = Native.application?(path) && !own?(path)

    # The directory that paths are relative to; nil if it has been removed.
    def self.working_directory
      # In a non-UTF-8 locale, non-ASCII letters would not compare equal to those of a profile.
      directory = Printable.utf8(Dir.pwd)
      directory unless directory == "/"
    rescue SystemCallError
      nil
    end
  end
end
