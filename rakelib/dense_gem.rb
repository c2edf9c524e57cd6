# frozen_string_literal: true

require "digest"
require "open3"
require "rubygems/package"
require "stringio"
require "yaml"
require "zlib"

# A gem whose contents are compressed again by libdeflate: 3 % smaller than by zlib, and still plain gzip.
module DenseGem
  TOOL = %w[libdeflate-gzip -12 -c].freeze
  DIGESTS = { "SHA256" => Digest::SHA256, "SHA512" => Digest::SHA512 }.freeze
  Entry = Struct.new(:mode, :data)
  private_constant :TOOL, :DIGESTS, :Entry

  module_function

  # Whether the tool is here. Without it gems stay as RubyGems builds them.
  def available?
    Open3.capture2e(TOOL.first, "-h").last.success?
  rescue Errno::ENOENT
    false
  end

  # Replaces the file.
  def compress(file)
    entries = read(file)
    entries["data.tar.gz"].data = dense(entries["data.tar.gz"].data)
    checksums = DIGESTS.transform_values do |digest|
      %w[metadata.gz data.tar.gz].to_h { |name| [name, digest.hexdigest(entries[name].data)] }
    end
    entries["checksums.yaml.gz"].data = Zlib.gzip(checksums.to_yaml)
    write(file, entries)
  end

  def read(file)
    File.open(file, "rb") do |io|
      Gem::Package::TarReader.new(io).to_h { |entry|
        [entry.full_name, Entry.new(entry.header.mode, entry.read)]
      }
    end
  end

  def write(file, entries)
    File.open(file, "wb") do |io|
      Gem::Package::TarWriter.new(io) do |tar|
        entries.each do |name, entry|
          tar.add_file_simple(name, entry.mode, entry.data.bytesize) { |part| part.write(entry.data) }
        end
      end
    end
  end

  def dense(gzip)
    smaller, status = Open3.capture2(*TOOL, stdin_data: Zlib.gunzip(gzip), binmode: true)
    raise "#{TOOL.first} failed" unless status.success? && Zlib.gunzip(smaller) == Zlib.gunzip(gzip)

    smaller
  end
end
