# frozen_string_literal: true

require "json"

# The licences of the crates that are compiled into the extension: who passes it on passes on their texts.
module CrateLicences
  TEXTS = "{LICENSE,LICENCE,COPYING,COPYRIGHT,NOTICE,license}*"
  private_constant :TEXTS

  class << self
    # All texts, each once, with the names of the crates that it is of.
    def text
      by_text = crates.each_with_object(Hash.new { |hash, key| hash[key] = [] }) do |crate, found|
        name = "#{crate["name"]} #{crate["version"]} (#{crate["license"]})"
        texts(crate).each { |text| found[text] << name }
      end
      texts = by_text.map { |text, names| "#{names.uniq.sort.join("\n")}\n\n#{text.strip}\n" }
      texts.join("\n#{"-" * 80}\n\n")
    end

    private

    # What the extension depends on, but for what only builds it, and memprof itself.
    def crates
      arguments = %w[--format-version 1 --locked --filter-platform x86_64-unknown-linux-gnu]
      output = IO.popen(["cargo", "metadata", *arguments], &:read)
      raise "cargo metadata failed" unless $?.success?

      metadata = JSON.parse(output)
      packages = metadata["packages"].to_h { |package| [package["id"], package] }
      nodes = metadata["resolve"]["nodes"].to_h { |node| [node["id"], node] }
      root = packages.values.find { |package| package["name"] == "memprof" }
      reached(root["id"], nodes).filter_map { |id| packages[id] if packages[id]["source"] }
    end

    def reached(root, nodes)
      open = [root]
      seen = [root]
      while (id = open.pop)
        needed = nodes[id]["deps"].select { |dep| dep["dep_kinds"].any? { |kind| kind["kind"].nil? } }
        fresh = needed.map { |dep| dep["pkg"] } - seen
        seen.concat(fresh)
        open.concat(fresh)
      end
      seen
    end

    def texts(crate)
      directory = File.dirname(crate["manifest_path"])
      files = Dir.glob(TEXTS, base: directory).map { |name| File.join(directory, name) }
      files.select { |path| File.file?(path) }.map { |path| File.read(path, encoding: "UTF-8").scrub }
    end
  end
end
