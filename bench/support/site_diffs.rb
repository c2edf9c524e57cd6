# frozen_string_literal: true

# Finds the site that gained most in three dumps of ObjectSpace, without references. A site is a class, a file
# and a line.
module SiteDiffs
  # Minimum bytes or objects, as in `memprof leaks`.
  BYTES = 8 << 10
  OBJECTS = 100

  module_function

  # The keys of an object; quotes in values are escaped.
  FIELDS = { type: /"type":"(\w+)"/, of: /"class":"(\w+)"/, name: /"name":"([^"]+)"/,
             place: /"file":"([^"]+)", ?"line":(\d+)/, size: /"memsize":(\d+)/ }.freeze

  # The site and the size of each object of a dump, by address. If sites are known, objects without one were
  # allocated before tracking, or are memprof's own, which these tools would not have.
  def records(json)
    names = {}
    objects = File.foreach(json).filter_map do |line|
      address = line[/\A\{"address":"(\w+)"/, 1] or next
      type, of, name, place, size = FIELDS.values.map { |field| field.match(line) }
      names[address] = name[1] if name
      [address, of && of[1], type[1], place && "#{place[1]}:#{place[2]}", size ? size[1].to_i : 0]
    end
    objects.select! { |object| object[3] } if objects.any? { |object| object[3] }
    objects.to_h { |address, of, type, place, size| [address, ["#{names.fetch(of, type)} #{place}", size]] }
  end

  # Like `heapy diff` of three dumps: objects of the second that are not in the first, but still in the third.
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
