# frozen_string_literal: true

require "tmpdir"

# Full or read-only file systems.
module FileSystems
  # Mounts a file system with these options at a directory for the block; only root may.
  def with_file_system(options)
    Dir.mktmpdir do |directory|
      skip "can't mount here" unless system("mount", "-t", "tmpfs", "-o", options, "memprof", directory,
        out: File::NULL, err: File::NULL)
      begin
        yield(directory)
      ensure
        system("umount", "--lazy", directory) # a process killed just now may still have a file there
      end
    end
  end
end
