# frozen_string_literal: true

require "objspace"

# What was alive at the end of each step, by site and by the step of the allocation.
class Recording
  PER_HOUR = 12
  # Sites with fewer objects are left out.
  LEAST = 15
  MOST = 160

  # Objects whose size was taken, their bytes, and the objects alive by the steps of birth and of the look.
  Place = Struct.new(:objects, :bytes, :cells)

  # Runs an app for some hours, and writes the record into a file.
  def self.run((path, seed, hour, hours))
    random = Random.new(Integer(seed))
    ObjectSpace.trace_object_allocations_start
    app = yield(random, Integer(hour))
    recording = new
    allocated = Array.new(Integer(hours) * PER_HOUR) do
      recording.begin_step
      before = GC.stat(:total_allocated_objects)
      app.step
      objects = GC.stat(:total_allocated_objects) - before
      recording.end_step
      objects
    end
    File.binwrite(path, Marshal.dump(recording.result(allocated)))
  end

  def initialize
    @marks = []
    @places = Hash.new { |files, file| files[file] = {} }
  end

  # Objects of this step have a generation from here on.
  def begin_step
    GC.start
    @marks << GC.count
  end

  # Tracing pauses, so that the look does not see itself.
  def end_step
    seen = @marks.size - 1
    GC.disable
    ObjectSpace.trace_object_allocations_stop
    ObjectSpace.each_object { |object| note(object, seen) }
  ensure
    ObjectSpace.trace_object_allocations_start
    GC.enable
  end

  # The lifetimes of objects: site, born in a step, gone after another, count.
  def result(app_steps)
    places = @places.flat_map do |file, lines|
      lines.flat_map { |line, classes| classes.map { |klass, place| [[file, line, klass], place] } }
    end
    places.select! { |_, place| largest(place) >= LEAST }
    places = places.max_by(MOST) { |_, place| largest(place) * mean(place) }
    sites = places.map { |site, place| [*name(*site), mean(place), Recording.pack(lifetimes(place))] }
    { steps: app_steps, sites: sites }
  end

  # Columns of small numbers, which compress well.
  def self.pack(lifetimes)
    last = 0
    columns = lifetimes.sort.map do |born, gone, count|
      since = born - last
      last = born
      [since, gone - born, count]
    end
    columns.transpose.map { |numbers| numbers.pack("w*") }
  end

  def self.unpack(columns)
    born = 0
    columns.map { |text| text.unpack("w*") }.transpose.map do |since, steps, count|
      born += since
      [born, born + steps, count]
    end
  end

  private

  # The most objects that were alive at a time.
  def largest(place)
    place.cells.values.reduce { |all, counts| all.merge(counts) { |_, a, b| a + b } }.values.max
  end

  def mean(place) = place.bytes.fdiv(place.objects).round

  def name(file, line, klass) = [File.basename(file), line, klass.to_s[/\A[\w:]+/] || "Class"]

  def note(object, seen)
    generation = ObjectSpace.allocation_generation(object) or return
    born = (@marks.bsearch_index { |mark| mark > generation } || @marks.size) - 1
    return if born.negative?

    lines = @places[ObjectSpace.allocation_sourcefile(object)]
    classes = lines[ObjectSpace.allocation_sourceline(object)] ||= {}.compare_by_identity
    place = classes[CLASS.bind_call(object)] ||= Place.new(0, 0, {})
    cells = place.cells[born] ||= Hash.new(0)
    cells[seen] += 1
    # Sizes of a few say enough.
    return if place.objects > 200

    place.objects += 1
    place.bytes += ObjectSpace.memsize_of(object)
  end

  CLASS = Kernel.instance_method(:class)
  private_constant :CLASS

  # Objects that were seen in a step and not in the next one.
  def lifetimes(place)
    place.cells.flat_map do |born, counts|
      counts.filter_map do |seen, count|
        gone = count - counts.fetch(seen + 1, 0)
        [born, seen + 1, gone] if gone.positive?
      end
    end
  end
end
