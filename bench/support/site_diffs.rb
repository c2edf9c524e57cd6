# frozen_string_literal: true

require "json"

# What three dumps of ObjectSpace show without references: the site that gained most. A site is a class, a
# file and a line.
module SiteDiffs
  # As many bytes or objects as `memprof leaks` finds worth a word.
  BYTES = 8 << 10
  OBJECTS = 100

  module_function

  # The site and the size of each object of a dump, by address. Where sites are known, what has none was
  # there before they were recorded, or is memprof's own, which these tools would not have.
  def records(json)
    names = {}
    objects = File.foreach(json, encoding: Encoding::UTF_8).filter_map do |line|
      object = JSON.parse(line)
      address = object["address"] or next
      names[address] = object["name"] if object["name"]
      [address, *object.values_at("class", "type", "file", "line", "memsize")]
    end
    objects.select! { |object| object[3] } if objects.any? { |object| object[3] }
    objects.to_h do |address, of, type, file, line, size|
      site = "#{names.fetch(of, type)} #{"#{file}:#{line}" if file}"
      [address, [site, size.to_i]]
    end
  end

  # As `heapy diff` of three dumps: what the second has and the first has not, and the third has still.
  def new_objects(first, second, third)
    largest(sums(second.select { |address, _| !first.key?(address) && third.key?(address) }.values))
  end

  # The sites with more bytes in each dump than in the one before.
  def growing_sites(*dumps)
    first, second, third = dumps.map { |dump| sums(dump.values) }
    grown = third.filter_map do |site, (size, count)|
      before, between = [first, second].map { |sums| sums.fetch(site, [0, 0]) }
      [site, [size - before[0], count - before[1]]] if before[0] < between[0] && between[0] < size
    end
    largest(grown.to_h)
  end

  def sums(rows)
    rows.each_with_object(Hash.new { |hash, site| hash[site] = [0, 0] }) do |(site, size), sums|
      sums[site][0] += size
      sums[site][1] += 1
    end
  end

  def largest(sums)
    site, (size, count) = sums.max_by { |_, (bytes, _)| bytes }
    site if site && (size >= BYTES || count >= OBJECTS)
  end
end
