# frozen_string_literal: true

module Memprof
  # The columns of all answers: text, CSV, Markdown and pages take headings from here, and docs/columns.md is
  # written from it. A heading has one meaning.
  module Columns
    # A column: its key, which is also that of its values in most answers; its heading; the kind of its values
    # (see Cell); and a sentence that explains it.
    Column = Struct.new(:key, :heading, :kind, :sentence)

    def self.fetch(key) = TABLE.fetch(key)

    # A fact by which the objects of a heap are grouped: the column that shows it, its name in a sentence, and
    # its form, if its groups are a tree, or a chart as their keys are numbers.
    Group = Struct.new(:column, :name, :form)

    # The facts by which Heap#histogram groups, for the command and the page.
    HEAP_GROUPS = {
      class: [:class, "class"], type: [:type, "type"], file: [:file, "file"], line: [:site, "line"],
      application: [:own, "line of the application"], gem: [:gem, "gem"], method: [:method, "method"],
      generation: [:generation, "generation", :chart], age: [:age, "age", :chart],
      size: [:size, "size", :chart], length: [:length, "length", :chart], shape: [:shape, "shape"],
      slot: [:slot_size, "slot"], imemo: [:imemo, "imemo type"], namespace: [:namespace, "namespace", :tree],
      superclass: [:class, "superclass", :tree], root: [:root, "root"]
    }.transform_values { |values| Group.new(*values).freeze }.freeze

    # The columns of all facts by which commands and pages group objects.
    GROUPS = { **HEAP_GROUPS.transform_values(&:column), site: :site }.freeze

    # The facts whose groups have a form, such as `:tree`.
    def self.groups_in(form) = HEAP_GROUPS.select { |_, group| group.form == form }.keys

    SECTIONS = {
      "Objects of a heap" => [
        [:retained, "Retained size", :bytes, "memory that would be freed together with the object; " \
                                             "of a group, each byte is counted once"],
        [:percent, "Retained %", :percent, "retained size as a share of the heap's bytes"],
        [:size, "Shallow size", :bytes, "memory of the object itself: slot and malloc'ed memory"],
        [:shallow_percent, "Shallow %", :percent, "shallow size as a share of the heap's bytes"],
        [:count, "Objects", :count, "number of objects"],
        [:instances, "Instances", :count, "number of objects of the class"],
        [:class, "Class", :name, "its class; the VM's own are in angle brackets"],
        [:classes, "Classes", :count, "number of classes in the namespace"],
        [:type, "Type", :name, "how the VM stores the object: string, array, hash, ..."],
        [:object, "Object", :name, "class of the object, and the beginning of its value"],
        [:address, "Address", :address, "its address, which other commands take"],
        [:site, "Allocated at", :place, "line of code that allocated it"],
        [:own, "Application", :place, "application's line that called the allocating library"],
        [:generation, "Generation", :count, "GC runs before the object was allocated"],
        [:generations, "Generations", :number, "first and last generation of the group"],
        [:age, "Age", :name, "GC runs that the object has survived"],
        [:file, "File", :name, "file of the code"],
        [:gem, "Gem", :name, "gem of the file"],
        [:method, "Method", :name, "method that allocated the object"],
        [:shape, "Shape", :name, "shape of the object: its instance variables, in order"],
        [:imemo, "imemo type", :name, "type of an internal object of the VM"],
        [:namespace, "Namespace", :name, "module that contains the class"],
        [:contains, "Contains", :number, "classes and namespaces inside"],
        [:name, "Name", :name, "class, method or variable"],
        [:group, "Group", :name, "key of the group"],
        [:within, "In", :name, "keys of the groups inside it"],
        [:largest, "Largest", :address, "address of the largest object that was merged"]
      ],
      "Trees" => [
        [:level, "Level", :count, "depth of the row"],
        [:frame, "Frame", :name, "function, class or file"],
        [:frame_total, "Total", :number, "sum of the row and of those below it"],
        [:finding, "Finding", :name, "what grows or is large, in a sentence"]
      ],
      "References" => [
        [:label, "Reference", :label, "name of the reference: variable, index, key"],
        [:references, "References", :count, "outgoing references"],
        [:referrers, "Referrers", :count, "objects that reference it"],
        [:depth, "Depth", :count, "references from a GC root to the object"],
        [:retained_by, "Retained by", :name, "path from a GC root to the object"],
        [:holder, "Referenced by", :name, "class and variable that reference it most often"],
        [:root, "Root", :name, "kind of GC root"],
        [:distance, "Distance", :name, "references before or after the object"],
        [:paths, "Paths", :count, "paths from GC roots through the step"],
        [:through, "Through", :name, "step of the path"],
        [:example, "Example", :address, "address of one of the objects"]
      ],
      "Strings, collections, procs, slots" => [
        [:wasted, "Wasted", :bytes, "memory that sharing one copy would free"],
        [:wasted_percent, "Wasted %", :percent, "wasted memory as a share of the heap's bytes"],
        [:strings, "Strings", :count, "number of equal strings"],
        [:text, "Text", :name, "beginning of the string"],
        [:length, "Length", :count, "elements of a collection, or bytes of a string"],
        [:capacity, "Capacity", :count, "elements that it has room for"],
        [:unused, "Unused", :bytes, "memory of the room that has no element"],
        [:elements, "Elements", :count, "elements in all of them"],
        [:empty, "Empty", :count, "collections without elements"],
        [:empty_size, "Size of empty", :bytes, "shallow size of the empty ones"],
        [:empty_holder, "Empty ones referenced by", :name, "class and variable that reference most of them"],
        [:single, "One element", :count, "collections with one element"],
        [:procs, "Procs", :count, "number of procs"],
        [:defined_at, "Defined at", :place, "line that defines the block, method or example"],
        [:captured, "Captured", :name, "local variables that the proc retains, with their classes"],
        [:slot_size, "Slot size", :bytes, "size of the slots of a page of Ruby's heap"],
        [:pages, "Pages", :count, "number of pages of Ruby's heap"],
        [:slots, "Slots", :count, "number of slots of the pages"],
        [:used, "Used", :count, "slots with an object"],
        [:free, "Free", :count, "slots without an object"],
        [:fill, "Fill %", :percent, "share of the room that is used"],
        [:nearly_empty_pages, "Nearly empty pages", :count, "number of pages with few used slots " \
                                                            "(--nearly-empty)"],
        [:nearly_empty_objects, "Objects there", :count, "objects on the nearly empty pages"],
        [:returnable, "Returnable", :bytes, "memory of the nearly empty pages, which Ruby could return to " \
                                            "the system without those objects"],
        [:fills, "Pages by share of used slots", :name, "how many pages are how full"]
      ],
      "Dumps compared, and leaks" => [
        [:growth, "Growth", :growth, "difference in bytes between the dumps, without garbage"],
        [:new, "New", :count, "objects that only the later dump has"],
        [:gone, "Freed", :count, "freed objects"],
        [:survived, "Survived", :count, "new objects that the last dump has, too"],
        [:garbage, "Garbage", :count, "objects that the next GC frees"],
        [:retained_by_new, "Retained by new", :bytes, "retained size of the new objects"],
        [:before, "Before", :bytes, "amount in the earlier one"],
        [:after, "After", :bytes, "amount in the later one"],
        [:change, "Change", :growth, "their difference"],
        [:series, "Over the dumps", :series, "growth from dump to dump"],
        [:old_holders, "Old objects", :count, "old objects with such a reference"],
        [:retains, "Retains", :count, "new objects that it reaches, with itself"],
        [:retains_each, "Retains, each", :count, "most new objects that one of the new objects reaches"],
        [:new_class, "New", :name, "class of the new objects"],
        [:example_path, "Example", :name, "one of the references"],
        [:gained, "Gained", :bytes, "growth, or memory that has gathered"],
        [:trend, "Trend", :name, "whether it grows on, and by how much in an hour"],
        [:why, "Because", :name, "mechanism of the leak"],
        [:match, "Line", :name, "how the line of one report was found in the other"]
      ],
      "Allocations" => [
        [:allocated, "Allocated", :bytes, "allocated memory"],
        [:retained_bytes, "Retained", :bytes, "memory of the objects that are still alive"],
        [:survived_percent, "Survived %", :percent, "share of the line's objects that are alive"],
        [:freed_percent, "Freed", :percent, "share of the line's objects that were freed"],
        [:age_at_free, "Mean age", :number, "mean number of GC runs that freed objects survived"],
        [:at_peak, "At peak", :bytes, "memory that was live when memory was largest"],
        [:bytes, "Bytes", :bytes, "memory of the objects"],
        [:objects_per_run, "Objects/run", :number, "objects that each run adds"],
        [:least, "At least", :number, "lower bound of objects per run"],
        [:bytes_per_run, "Bytes/run", :bytes, "memory that each run adds"],
        [:live_objects, "Live", :count, "number of live objects"],
        [:runs, "Over the runs", :name, "live objects after each run"],
        [:test, "Example", :name, "description of the example of the test suite"],
        [:live_for, "Live for", :seconds, "mean age of the live objects"],
        [:oldest, "Oldest", :seconds, "largest age of the live objects"],
        [:per_hour, "Per hour", :bytes, "growth in an hour"]
      ],
      "malloc" => [
        [:live, "Live", :bytes, "memory of malloc that is not freed"],
        [:blocks, "Blocks", :count, "number of blocks"],
        [:calls, "Calls", :count, "number of calls"],
        [:frees, "Frees", :count, "freed blocks"],
        [:mean_life, "Mean life", :count, "mean number of GC runs until a block is freed"],
        [:max_life, "Max life", :count, "most GC runs until a block is freed"],
        [:at_end, "At end", :bytes, "memory that is live at the end of the recording"],
        [:temporary, "Temporary", :count, "number of blocks that were freed before anything else was " \
                                          "allocated or freed"],
        [:up_to, "Size up to", :bytes, "largest size of the blocks"],
        [:calls_percent, "% of calls", :percent, "share of the calls"],
        [:leaked, "Leaked", :bytes, "memory that was not freed"],
        [:function, "Function", :name, "function and its library"],
        [:callees, "With callees", :bytes, "memory that the function and what it called allocated"],
        [:self_bytes, "Self", :bytes, "memory without that of callees or required files"],
        [:sum, "In all", :bytes, "size of all blocks"],
        [:malloc_generation, "Allocated in generation", :count, "GC runs before"]
      ],
      "Memory of a process" => [
        [:memory, "Size", :bytes, "size of the block or part"],
        [:share, "Share", :percent, "share of the total"],
        [:what, "What", :name, "what the memory is used for"],
        [:accuracy, "Accuracy", :name, "measured or estimated"],
        [:number, "Count", :count, "number of them"],
        [:rss, "RSS", :bytes, "resident memory"],
        [:pss, "PSS", :bytes, "RSS, with shared pages split among processes"],
        [:private, "Private", :bytes, "RSS that no other process shares"],
        [:shared, "Shared", :bytes, "RSS that other processes share"],
        [:swap, "Swap", :bytes, "memory swapped out"],
        [:ruby, "Ruby", :bytes, "resident pages of Ruby's heap"],
        [:pid, "PID", :number, "number of the process"],
        [:process, "Process", :name, "name or number of the process"]
      ],
      "Core files" => [
        [:state, "State", :name, "state of the file"],
        [:each, "Each", :bytes, "size of each block"],
        [:block_bytes, "In blocks", :bytes, "memory in blocks of malloc that the objects own"],
        [:slot_bytes, "In slots", :bytes, "memory in slots of Ruby's heap"],
        [:arena_size, "From the system", :bytes, "memory that the arena got from the system"],
        [:arena_used, "In use", :bytes, "memory of used blocks"],
        [:arena_free, "Free inside", :bytes, "memory of free blocks between used ones"],
        [:largest_free, "Largest free", :bytes, "size of the largest free block"],
        [:top_size, "Free at the end", :bytes, "free memory at the end of the arena"]
      ],
      "Boot and code" => [
        [:total, "Total", :bytes, "memory of the file or gem, with what it requires"],
        [:code_bytes, "Code", :bytes, "memory of instruction sequences"],
        [:iseqs, "Instruction sequences", :count, "number of instruction sequences"],
        [:rss_growth, "RSS", :growth, "growth of RSS while the file was loaded"],
        [:seconds, "Time", :seconds, "time taken"],
        [:required_by, "Required by", :count, "files that require it"],
        [:files, "Files", :count, "number of files"],
        [:code, "Code", :name, "method, block or class body"]
      ],
      "Traced requests" => [
        [:requests, "Requests", :count, "number of requests"],
        [:request, "Request", :name, "path or action of the request"],
        [:line, "Line", :count, "line of the log"],
        [:status, "Status", :number, "status code of the response"],
        [:start, "Start", :name, "time of the request"],
        [:cost, "Cost", :name, "what was measured: time, objects, SQL, ..."],
        [:amount, "Amount", :number, "cost of the request"],
        [:rank, "Rank", :name, "place among all requests"],
        [:cost_total, "Total", :number, "cost of all requests"],
        [:cost_percent, "% of total", :percent, "share of the cost of all requests"],
        [:n_plus_one, "N+1", :count, "requests in which a line repeats the statement"],
        [:queries, "Queries", :count, "number of queries"],
        [:slowest, "Slowest", :seconds, "time of the slowest query"],
        [:sql, "SQL", :name, "statement without its values"],
        [:caller, "Called at", :place, "line that runs the statement"],
        [:work, "Work", :name, "client or library"],
        [:kinds, "Of which", :name, "costs of each kind of call"],
        [:rendered, "Rendered", :count, "how often it was rendered"]
      ],
      "Files" => [
        [:heap, "Heap", :name, "name of the open dump"],
        [:dump, "Dump", :name, "name of the dump"],
        [:dumped, "Dumped", :name, "time of the dump"],
        [:file_size, "File size", :bytes, "size of the file"],
        [:path, "Path", :name, "path of the file"],
        [:host, "Host", :name, "host of the process"],
        [:app, "App", :name, "application of the process"]
      ]
    }.freeze

    TABLE = SECTIONS.values.flatten(1).to_h { |key, *rest| [key, Column.new(key, *rest).freeze] }.freeze
    private_constant :TABLE
  end
end
