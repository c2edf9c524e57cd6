# frozen_string_literal: true

require "tmpdir"

# File systems that are full, or read-only.
module FileSystems
  # Mounts one of its own at a directory for the block, with such options; only root may.
  def with_file_system(options)
    Dir.mktmpdir do |directory|
      skip "can't mount here" unless system("mount", "-t", "tmpfs", "-o", options, "memprof", directory,
        out: File::NULL, err: File::NULL)
      begin
        yield(directory)
      ensure
        system("umount", "--lazy", directory) # who was killed just now may still have a file there
      end
    end
  end
end
