# frozen_string_literal: true

require_relative "native"
require_relative "printable"

module Memprof
  # What a source file's path says: which gem it belongs to, and how to write it short. What is a gem's path,
  # and what the standard library's, is known in one place (crates/memprof-paths), by which
  # profiles are grouped.
  module Paths
    INTERNAL = "<internal:"
    OWN_LIBRARY = Printable.utf8(File.expand_path("..", __dir__))
    OWN_FILES = ["#{OWN_LIBRARY}/memprof.rb", "#{OWN_LIBRARY}/memprof/"].freeze
    private_constant :INTERNAL, :OWN_LIBRARY, :OWN_FILES

    # The gem, standard library or application that a file belongs to.
    def self.gem_of(path) = Native.gem_of(path)

    # The path from the gem, standard library or application on, as `normalize_paths` has it.
    def self.normalize(path) = Native.short_path(path)

    # The path as memprof's own tables write it: from the gem or library on, else relative to `directory`.
    def self.short(path, directory = working_directory)
      return internal(path) if path.start_with?(INTERNAL)

      Native.library_path(path) || (directory ? path.delete_prefix("#{directory}/") : path)
    end

    # File and line as memprof's own tables write them; without a line, the file alone.
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

    # Whether the file is one of memprof's own.
    def self.own?(path) = path.start_with?(*OWN_FILES)

    # Whether the file belongs to the application: to no gem, not to the standard library, the VM or memprof.
    def self.application?(path) = Native.application?(path) && !own?(path)

    # The directory that paths are written relative to; nil if it has been removed under the process.
    def self.working_directory
      # In a locale without them, letters beyond ASCII would not compare with those of a profile.
      directory = Printable.utf8(Dir.pwd)
      directory unless directory == "/"
    rescue SystemCallError
      nil
    end
  end
end
