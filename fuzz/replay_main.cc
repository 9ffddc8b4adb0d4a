// Runs one fuzz target without libFuzzer: over every file of the given directories and, with
// --mutations N, over N deterministic variations of those files. Ends with exit 1 where there is
// nothing to replay, so that a lost corpus cannot pass unseen.
//
//   mcap_replay [--mutations N] FILE_OR_DIR…
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

// The corpus is small by rule; what is larger is not mutated, only replayed.
constexpr std::size_t kMaxMutatedBytes = 64 * 1024;

Input read_input(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  return {text.begin(), text.end()};
}

void run(const Input& input) {
  // A heap block of exactly this size: an out-of-bounds read is visible to the address sanitizer.
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

Input mutate(Input input, std::mt19937_64& random) {
  static constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  const std::size_t steps = 1 + random() % 4;
  for (std::size_t step = 0; step < steps && !input.empty(); ++step) {
    const std::size_t at = random() % input.size();
    const auto place = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 6) {
      case 0:
        input[at] = static_cast<std::uint8_t>(input[at] ^ (1U << (random() % 8)));
        break;
      case 1:
        input[at] = kEdges[random() % std::size(kEdges)];
        break;
      case 2:
        input.resize(at);
        break;
      case 3: {
        // A length field is mostly four or eight bytes of little-endian integer.
        const std::size_t width =
            std::min<std::size_t>(random() % 2 == 0 ? 4 : 8, input.size() - at);
        std::fill_n(place, width, kEdges[random() % std::size(kEdges)]);
        break;
      }
      case 4:
        input.insert(place, static_cast<std::uint8_t>(random()));
        break;
      default:
        input.erase(place, place + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                       1 + random() % 16, input.size() - at)));
        break;
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mutations = 0;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mutations") == 0 && i + 1 < argc) {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
    } else {
      files.emplace_back(argv[i]);
    }
  }
  if (files.empty()) {
    std::fprintf(stderr, "%s: no corpus file to replay\n", argc > 0 ? argv[0] : "replay");
    return 1;
  }
  std::sort(files.begin(), files.end());

  std::vector<Input> inputs;
  for (const auto& file : files) {
    // Flushed before the run: the last line names the file that crashes.
    std::printf("%s\n", file.filename().c_str());
    std::fflush(stdout);
    Input input = read_input(file);
    run(input);
    if (input.size() <= kMaxMutatedBytes) inputs.push_back(std::move(input));
  }
  run({});

  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < mutations && !inputs.empty(); ++i) {
    run(mutate(inputs[i % inputs.size()], random));
  }
  std::printf("%zu files and %llu mutations replayed\n", files.size(),
              static_cast<unsigned long long>(inputs.empty() ? 0 : mutations));
  return 0;
}
