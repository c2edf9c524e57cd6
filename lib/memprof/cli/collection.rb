# frozen_string_literal: true

module Memprof
  module CLI
    # Takes a dump from where its process left it.
    module Collection
      class << self
        # Copies a file of a process (a {ForeignFiles::Entry}) to a path of this one, and removes it there.
        def take(target, dump, destination)
          dump.open do |file|
            # Looked at once more: the name may be another file's by now.
            raise Error, "can't read #{dump}: it does not belong to process #{target.pid}" unless
              target.ours?(file.stat)

            Output.open(destination) { |io| IO.copy_stream(file, io) }
            dump.remove(file)
          end
        rescue Error => e
          # The process has done its part: the dump stays where it is.
          raise UsageError, "#{e.message}; the dump is #{dump}"
        end

        # The name of a stored dump unless one is given.
        def name(target, ending)
          "#{target.name}-#{target.pid}-#{Time.now.strftime("%Y%m%d-%H%M%S")}#{ending}"
        end
      end
    end
  end
end
