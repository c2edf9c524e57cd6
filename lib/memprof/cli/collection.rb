# frozen_string_literal: true

module Memprof
  module CLI
    # Fetches a dump from where its process wrote it.
    module Collection
      class << self
        # Copies a process's file (a {ForeignFiles::Entry}) to a path here, and removes the original.
        def take(target, dump, destination)
          dump.open do |file|
            # Checked again: the name may belong to another file by now.
            raise Error, "cannot read #{dump}: it does not belong to process #{target.pid}" unless
              target.ours?(file.stat)

            Output.open(destination) { |io| IO.copy_stream(file, io) }
            dump.remove(file)
          end
        rescue Error => e
          # The process is done: the dump is left where it is.
          raise UsageError, "#{e.message}; the dump is #{dump}"
        end

        # The default name of a stored dump.
        def name(target, ending)
          "#{target.name}-#{target.pid}-#{Time.now.strftime("%Y%m%d-%H%M%S")}#{ending}"
        end
      end
    end
  end
end
